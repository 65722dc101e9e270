"""drapps experiment ahead: arguments, runs, output."""

import argparse
import datetime
import json
import math
import random
import sys
import tempfile

import drapps.trace
from drapps import _core
from drapps.bench import bench_table, runner
from drapps.printing import print_json
from benchmarks.experiments import pictures
from benchmarks.experiments.ahead import ahead_figures, ahead_judge
from benchmarks.experiments.monitor import monitor_findings
from benchmarks.experiments.monitor.monitor_command import shown
from benchmarks.experiments.monitor.readings import run_child

DESCRIPTION = (
    "Are batches ready when they are needed, without a larger buffer than necessary?  Needs an otherwise idle machine."
)
HELD_SECONDS = 6  # seconds of each half of a run with fixed knobs, which does not adapt
ADAPTIVE, HELD = "policy", "held"
MOST_READERS = 64


def make_parser():
    parser = argparse.ArgumentParser(prog="drapps experiment ahead", description=DESCRIPTION)
    parser.add_argument("--rounds", type=int, default=4, help="rounds of each contender (default: 4)")
    parser.add_argument("--before", type=float, default=20, help="seconds with the slow consumer (default: 20)")
    parser.add_argument("--after", type=float, default=20, help="seconds with the fast consumer (default: 20)")
    parser.add_argument(
        "--step-ms", type=float, default=40, help="milliseconds for which the slow consumer holds a batch (default: 40)"
    )
    parser.add_argument("--delay-ms", type=float, default=150, help="milliseconds of a read (default: 150)")
    parser.add_argument("--batch", type=int, default=4, help="samples per batch (default: 4)")
    parser.add_argument("--policy", default="analytic", help="policy (default: analytic)")
    parser.add_argument("--data", metavar="DIR", help="folder of JPEG files for the loader (default: generated)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order of runs")
    parser.add_argument("--json", action="store_true", help="print JSON, with all figures")
    parser.add_argument("--into", metavar="FILE", help="write the tables into the section results-ahead")
    return parser


def held_knobs(options):
    """Return knobs with as many batches as the slow consumer needs, and enough of the rest for the fast one."""
    reads = options.delay_ms / options.step_ms  # while one batch is used
    readers = min(math.ceil(1.15 * 2 * reads * options.batch), MOST_READERS)
    return {"workers": 2, "prefetch": math.ceil(reads) + 1, "readers": readers}


def script_of(name, options):
    """Return the settings of the child, without data and trace."""
    script = {"batch": options.batch, "step": options.step_ms / 1000, "before": options.before, "after": options.after,
              "policy": options.policy, "knobs": {}}  # fmt: skip
    if name == HELD:
        script |= {"before": min(options.before, HELD_SECONDS), "after": min(options.after, HELD_SECONDS),
                   "policy": "fixed", "knobs": held_knobs(options)}  # fmt: skip
    return script


def run_one(name, options, data, folder):
    """Run a round of a contender in its own process."""
    script = {**script_of(name, options), "data": data, "trace": f"{folder}/run.drtrace"}
    delay = {"DRAPPS_READ_DELAY_US": str(round(1000 * options.delay_ms))}
    environment = {**delay, "DRAPPS_POLICY": "", "DRAPPS_LIVE": "off"}
    times = run_child("consumer_child", json.dumps(script), environment=environment, package=__package__)
    return ahead_judge.Round(*ahead_figures.of_run(drapps.trace.read(script["trace"]), times))


def run(options, say=lambda text: None):
    """Run all rounds, each in random order; return {contender's name: rounds}."""
    runs, rng = {ADAPTIVE: [], HELD: []}, random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="drapps-experiment-") as folder:
        data = options.data or pictures.make_images(folder, classes=4, each=32, size=(200, 150))
        for k in range(options.rounds):
            for name in rng.sample(list(runs), len(runs)):
                runs[name].append(run_one(name, options, data, folder))
                since = runs[name][-1].parts["since"]
                say(f"round {k + 1}, {name}: waits {since.stall:.2%} since the change, prefetch {since.prefetch:g}")
    return runs


def title(name, options):
    """Return the title of a contender for the table."""
    held = ", ".join(f"{knob} {value}" for knob, value in held_knobs(options).items())
    return {ADAPTIVE: f"`{options.policy}`", HELD: f"`fixed`: {held}"}[name]


def page(runs, options, argv):
    """Return the tables, with the machine and the settings."""
    here, today = runner.machine(), datetime.date.today().isoformat()
    head = (f"`drapps experiment ahead{''.join(' ' + word for word in shown(argv))}`; {here['cpu']}, {here['cpus']} "
            f"CPUs, {here['system']}; {today}.  Reads take {options.delay_ms:g} ms, batches have {options.batch} "
            f"samples; the consumer holds one for {options.step_ms:g} ms, after {options.before:g} s for half of that; "
            f"{options.rounds} rounds: mean ± sd [95 % CI].")  # fmt: skip
    rows = [("ahead", found) for found in ahead_judge.findings(runs[ADAPTIVE], runs[HELD])]
    parts = ahead_judge.table({title(name, options): rounds for name, rounds in runs.items()})
    return f"{head}\n\n{monitor_findings.table(rows)}\n{parts}"


def as_dict(runs):
    """For JSON."""
    def plain(found):
        parts = {name: {**p._asdict(), "need": p.need, "hoard": p.hoard} for name, p in found.parts.items()}
        return {"doubled_s": found.doubled, "parts": parts}

    def known(found):  # one round has no interval
        return {key: value for key, value in found.figures.items() if value not in (math.inf, -math.inf)}

    return {"rounds": {name: [plain(found) for found in rounds] for name, rounds in runs.items()},
            "findings": [{**found._asdict(), "figures": known(found)}
                         for found in ahead_judge.findings(runs[ADAPTIVE], runs[HELD])]}  # fmt: skip


def check(options):
    """Raise ArgumentError for invalid options."""
    if options.rounds < 1 or options.batch < 1:
        raise _core.ArgumentError(f"--rounds and --batch must be at least 1, got {options.rounds} and {options.batch}")
    if not min(options.before, options.after) >= 2:
        raise _core.ArgumentError(
            f"--before and --after must be at least 2, got {options.before:g} and {options.after:g}"
        )
    if options.step_ms <= 0 or options.delay_ms <= 0:
        raise _core.ArgumentError(
            f"--step-ms and --delay-ms must be above 0, got {options.step_ms:g} and {options.delay_ms:g}"
        )


def main(argv=None):
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    args = make_parser().parse_args(argv)
    check(args)
    runs = run(args, lambda text: print(text, file=sys.stderr, flush=True))
    if args.into:
        bench_table.write_section(args.into, "results-ahead", page(runs, args, argv))
    if args.json:
        return print_json(as_dict(runs))
    print(page(runs, args, argv))
