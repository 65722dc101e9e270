"""Ten planted bottlenecks and two healthy runs: does `drapps profile` name them?

    drapps experiment planted --seed 1

Each plant (plants.py) writes data and a training script, and makes the conditions around a child process that runs
`drapps profile script.py` (field.py).  Strength and place are random by the seed.  The child sees only the run: no
parameter of the plant but what any script says of itself.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from typing import NamedTuple

from drapps.cli.show import print_json, print_table
from drapps.experiment.field import Field, profiled
from drapps.experiment.plants import PLANTS

SECONDS = 10  # of measuring, for each plant


class Row(NamedTuple):
    """What came of a plant."""

    name: str
    expected: str
    verdict: str
    strength: str
    seconds: float
    findings: list
    facts: dict

    @property
    def right(self):
        return self.verdict == self.expected


def run(seed=1, names=None, seconds=SECONDS, say=lambda row: None):
    """Rows, one a plant, in an order by the seed.  say: called with each as it is there."""
    chosen = [plant for plant in PLANTS if not names or plant.name in names]
    random.Random(seed).shuffle(chosen)
    rows = []
    for plant in chosen:
        rows.append(_run_one(plant, seed, seconds))
        say(rows[-1])
    return rows


def _run_one(plant, seed, seconds):
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="drapps-planted-") as root:
        at = Field(root, seed, plant.name)
        os.mkdir(at.folder)
        with at.undo:
            try:
                case = plant.make(at)
            except SystemExit as error:  # this machine does not let us make the conditions
                return Row(plant.name, plant.expected, "not run", str(error), 0.0, [], {})
            case.write(f"{root}/train.py", at.folder)
            found = profiled(f"{root}/train.py", case, seconds)
    return Row(plant.name, plant.expected, found.get("verdict") or "none", case.strength, time.monotonic() - begun,
               found.get("findings", []), found.get("facts", {}))  # fmt: skip


def table(rows):
    """Printed: what was planted, what was found."""
    shown = [(row.name, row.strength, row.verdict, "yes" if row.right else "no",
              ", ".join(f"{found['name']} {found['gain']:.1f}x" for found in row.findings), f"{row.seconds:.0f} s")
             for row in rows]  # fmt: skip
    print_table(("planted", "strength", "verdict", "right", "findings", ("time", "right")), shown)
    print(f"{sum(row.right for row in rows)} of {len(rows)} named")


def main(argv=None):
    """The program."""
    parser = argparse.ArgumentParser(prog="drapps experiment planted", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"which ones (default: all): {', '.join(p.name for p in PLANTS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of measuring, each (default: {SECONDS})")
    parser.add_argument("--json", action="store_true", help="print JSON, with all facts")
    args = parser.parse_args(argv)
    unknown = set(args.names) - {plant.name for plant in PLANTS}
    if unknown:
        parser.error(f"no plant is called {', '.join(sorted(unknown))}")
    rows = run(args.seed, args.names, args.seconds, lambda row: print(row.name, row.verdict, file=sys.stderr))
    if args.json:
        return print_json([{**row._asdict(), "right": row.right} for row in rows])
    table(rows)


if __name__ == "__main__":
    main()
