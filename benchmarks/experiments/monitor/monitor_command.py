"""drapps experiment monitor: arguments, runs, output."""

import argparse
import datetime
import subprocess
import sys

from drapps import _core
from drapps.bench import bench_table, runner
from drapps.printing import print_json
from benchmarks.experiments.monitor import cost, machine
from benchmarks.experiments.monitor.disk import disk
from benchmarks.experiments.monitor.monitor_findings import FAILED, IMPOSSIBLE, Finding, NotPossible, table
from benchmarks.experiments.monitor.network import network

DESCRIPTION = "Does the monitor read the machine correctly, and what does it cost?  Needs an otherwise idle machine."

TESTS = {
    "interval": machine.interval,
    "cpu": machine.cpu,
    "memory": machine.memory,
    "memory_bandwidth": machine.memory_bandwidth,
    "disk": disk,
    "network": network,
    "cost": cost.cost,
    "throughput": cost.throughput,
    "trace": cost.trace,
    "decisions": cost.decisions,
    "range": cost.value_range,
}


def make_parser():
    parser = argparse.ArgumentParser(prog="drapps experiment monitor", description=DESCRIPTION)
    parser.add_argument("--only", default=",".join(TESTS), help=f"tests, of {', '.join(TESTS)}")
    parser.add_argument("--seconds", type=float, default=10, help="seconds per reading (default: 10)")
    parser.add_argument("--fuzz-seconds", type=float, default=600, help="seconds of the test `range` (default: 600)")
    parser.add_argument(
        "--pairs", type=int, default=60, help="pairs of the tests `throughput` and `trace`; `decisions` has a fifth"
    )
    parser.add_argument("--segment", type=float, default=2, help="seconds per half of a pair of these tests")
    parser.add_argument("--memory-mb", type=int, default=2048, help="megabytes to allocate (default: 2048)")
    parser.add_argument("--data", metavar="DIR", help="folder of JPEG files for the loader (default: generated)")
    parser.add_argument(
        "--folder", metavar="DIR", help="folder on the disk to read and write (default: that of temporary files)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON, with all figures")
    parser.add_argument("--into", metavar="FILE", help="write the table into the section results-monitor")
    return parser


def run(names, options, say=lambda text: None):
    """Run the tests; return rows (test's name, finding).  Impossible and failed tests have a row, too."""
    rows = []
    for name in names:
        test = TESTS[name]
        say(f"{name}: {test.__doc__}")
        try:
            for found in test(options):
                rows.append((name, found))
                say(f"  {found.aim}: {found.measured}: {found.result}")
        except (NotPossible, OSError, RuntimeError, _core.Error, subprocess.SubprocessError) as error:
            result = IMPOSSIBLE if isinstance(error, NotPossible) else FAILED
            rows.append((name, Finding(test.__doc__, "-", f"{result}: {error}", {})))
            say(f"  {rows[-1][1].result}")
    return rows


def page(rows, argv):
    """Return the table, with the machine."""
    here, today = runner.machine(), datetime.date.today().isoformat()
    head = (f"`drapps experiment monitor{''.join(' ' + word for word in argv)}`; {here['cpu']}, {here['cpus']} CPUs, "
            f"{here['memory_gb']} GB, {here['system']}; {today}.")  # fmt: skip
    return f"{head}\n\n{table(rows)}"


def main(argv=None):
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    args = make_parser().parse_args(argv)
    names = args.only.split(",")
    unknown = [name for name in names if name not in TESTS]
    if unknown:
        raise _core.ArgumentError(f"--only must be one of {', '.join(TESTS)}, got {unknown[0]!r}")
    if args.pairs < 2 or args.seconds <= 0 or args.fuzz_seconds <= 0 or args.memory_mb < 8:
        raise _core.ArgumentError(
            "--pairs must be at least 2, --memory-mb at least 8, --seconds and --fuzz-seconds above 0"
        )
    rows = run(names, args, lambda text: print(text, file=sys.stderr, flush=True))
    if args.into:
        bench_table.write_section(args.into, "results-monitor", page(rows, shown(argv)))
    if args.json:
        return print_json([{"test": name, **found._asdict()} for name, found in rows])
    print(page(rows, shown(argv)))


def shown(argv):
    """Return the command line without the destination of the result."""
    parts = iter(argv)
    kept = []
    for part in parts:
        if part == "--into":
            next(parts, None)
        elif part != "--json" and not part.startswith("--into="):
            kept.append(part)
    return kept
