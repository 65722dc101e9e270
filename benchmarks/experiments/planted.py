"""Fourteen planted bottlenecks and two healthy runs: does `drapps profile` find them?

    drapps experiment planted --seed 1
    drapps experiment planted --seed 1 --remedies   # do remedies have the predicted gain?  (remedies.py)

Each plant (plants.py) writes data and a training script, and makes the conditions around a child process that runs
`drapps profile script.py` (planted_case.py).  Strength and place are random by the seed.  The child sees only the run,
not the parameters of the plant.
"""

import argparse
import datetime
import random
import sys
import tempfile
import time
from typing import NamedTuple

from drapps.bench.bench_table import write_section
from drapps.bench.runner import machine
from drapps.printing import print_json, print_table
from benchmarks.experiments import remedies
from benchmarks.experiments.planted_case import Field
from benchmarks.experiments.plants import PLANTS

SECONDS = 10  # seconds of measuring for each plant


class Row(NamedTuple):
    """The result of a plant."""

    name: str
    expected: str
    verdict: str
    strength: str
    seconds: float
    findings: list
    facts: dict
    trials: tuple = ()  # of remedies
    where: str = ""  # the name that the verdict must have

    @property
    def right(self):
        named = not self.where or any(self.where in found["evidence"] for found in self.findings[:1])
        return self.verdict == self.expected and named


def run(seed=1, names=None, seconds=SECONDS, say=lambda row: None, with_remedies=False):
    """Run the plants in an order given by the seed; return a row each.  say: called with each row."""
    chosen = [plant for plant in PLANTS if not names or plant.name in names]
    random.Random(seed).shuffle(chosen)
    rows = []
    for plant in chosen:
        with tempfile.TemporaryDirectory(prefix="drapps-planted-") as root:
            rows.append(_run_one(plant, Field(root, seed, plant.name), seconds, with_remedies))
        say(rows[-1])
    return rows


def _run_one(plant, at, seconds, with_remedies):
    begun = time.monotonic()
    with at.undo:
        try:
            case = plant.make(at)
        except SystemExit as error:  # the conditions cannot be made on this machine
            return Row(plant.name, plant.expected, "not run", str(error), 0.0, [], {})
        found = at.profiled(case, seconds)
        taken = time.monotonic() - begun
        trials = remedies.tried(at, case, plant.expected, found, seconds) if with_remedies else ()
    return Row(plant.name, plant.expected, found.get("verdict") or "none", case.strength, taken,
               found.get("findings", []), found.get("facts", {}), trials, plant.where)  # fmt: skip


def table(rows):
    """Print what was planted, what was found, and the gains of remedies."""
    shown = [(row.name, row.strength, row.verdict, "yes" if row.right else "no",
              ", ".join(f"{found['name']} {found['gain']:.1f}x" for found in row.findings), f"{row.seconds:.0f} s")
             for row in rows]  # fmt: skip
    print_table(("planted", "strength", "verdict", "right", "findings", ("time", "right")), shown)
    print(f"{sum(row.right for row in rows)} of {len(rows)} named")
    if all_trials(rows):
        print()
        remedies.table(all_trials(rows))


def all_trials(rows):
    """Return the trials of all plants."""
    return [trial for row in rows for trial in row.trials]


def make_parser():
    parser = argparse.ArgumentParser(prog="drapps experiment planted", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"plants to run (default: all): {', '.join(p.name for p in PLANTS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of measuring, each (default: {SECONDS})")
    parser.add_argument("--remedies", action="store_true",
                        help="run each plant again with its remedies: is the gain as expected?")  # fmt: skip
    parser.add_argument("--into", metavar="FILE", help="write the table of remedies into its section results-remedies")
    parser.add_argument("--json", action="store_true", help="print JSON, with all facts")
    return parser


def main(argv=None):
    """Run the command."""
    parser = make_parser()
    args = parser.parse_args(argv)
    unknown = set(args.names) - {plant.name for plant in PLANTS}
    if unknown:
        parser.error(f"a plant must be one of {', '.join(p.name for p in PLANTS)}, got {', '.join(sorted(unknown))}")
    if args.into and not args.remedies:
        parser.error("--into is for the table of --remedies")
    rows = run(args.seed, args.names, args.seconds, lambda row: print(row.name, row.verdict, file=sys.stderr),
               args.remedies)  # fmt: skip
    if args.into:
        write_section(args.into, "results-remedies", f"{_how(args)}\n\n{remedies.page(all_trials(rows))}")
    if args.json:
        return print_json([as_dict(row) for row in rows])
    table(rows)


def _how(args):
    """Return the command, the machine and the date."""
    where = machine()
    words = " ".join(["drapps experiment planted", *args.names, "--remedies"])
    return (f"`{words} --seed {args.seed} --seconds {args.seconds:g}`; {where['cpu']}, "
            f"{where['cpus']} CPUs, {where['system']}; {datetime.date.today().isoformat()}.")  # fmt: skip


def as_dict(row):
    """For JSON."""
    return {**row._asdict(), "right": row.right, "trials": [trial.as_dict() for trial in row.trials]}


if __name__ == "__main__":
    main()
