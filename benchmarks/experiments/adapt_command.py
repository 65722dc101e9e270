"""drapps experiment adapt: arguments, runs, output."""

import argparse
import os
import sys
import tempfile

from drapps import _core
from drapps.bench import bench_table, environments
from benchmarks.experiments import adapt, adapt_tables, adapt_training, pictures
from benchmarks.experiments.cells import Cells
from benchmarks.experiments.adapt_phases import Place

DESCRIPTION = "Is a loader that sets its own knobs as good as the best setting for each moment?"


def make_parser():
    parser = argparse.ArgumentParser(prog="drapps experiment adapt", description=DESCRIPTION)
    parser.add_argument("--only", default=",".join(SCENARIOS), help=f"scenarios, of {', '.join(SCENARIOS)}")
    parser.add_argument("--data", metavar="DIR", help="folder of JPEG files, one folder per class (default: generated)")
    parser.add_argument("--envs", default=environments.default_folder(), help="folder of the peers' environments")
    parser.add_argument(
        "--results", default="adapt.jsonl", help="file of results; existing results are not measured again"
    )
    parser.add_argument("--pairs", type=int, default=12, help="rounds of each contender (default: 12)")
    parser.add_argument("--peer-pairs", type=int, help="rounds of torch and tf.data (default: as --pairs)")
    parser.add_argument("--phase", type=float, default=20, help="seconds per phase (default: 20)")
    parser.add_argument(
        "--search-seconds", type=float, default=8, help="seconds per setting and condition of the search"
    )
    parser.add_argument("--search-rounds", type=int, default=2)
    parser.add_argument("--policies", default="analytic", help="comma-separated (default: analytic)")
    parser.add_argument(
        "--step-ms", type=float, default=80, help="seconds for which the slow consumer holds a batch of 64"
    )
    parser.add_argument("--samples", type=int, default=20_000, help="samples per training run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="run neither torch nor tf.data")
    parser.add_argument("--into", metavar="FILE", help="write each table into the section results-adapt-SCENARIO")
    return parser


def progress(text):
    print(text, file=sys.stderr, flush=True)


def run_adapt(name, cells, options, place):
    """Run a scenario; return its Markdown."""
    scenario = adapt.scenarios(len(os.sched_getaffinity(0)), options.step_ms / 1000)[name]
    experiment = adapt.Experiment(cells, options, place, progress)
    rates = experiment.search(name, scenario)
    best = adapt.best_static(rates, scenario)
    found = experiment.contenders(name, scenario, best)
    runs = experiment.rounds(name, scenario, found)
    parts = [f"Searched grid (samples/s, each condition held still):\n\n{adapt_tables.grid(rates)}"]
    for policy in options.policies:
        parts.append(f"`{policy}` against the best static setting of each phase:\n\n"
                     f"{adapt_tables.adapt(adapt.compare(runs, policy, best))}")  # fmt: skip
    parts.append(f"Everyone, samples/s:\n\n{adapt_tables.others(runs, [contender.name for contender in found])}")
    return "\n".join(parts)


def run_training(name, cells, options, place):
    """Run the training runs; return their Markdown."""
    return adapt_tables.training(adapt_training.compare(adapt_training.measure(cells, options, place.data, progress)))


SCENARIOS = {"steps": run_adapt, "quota": run_adapt, "demand": run_adapt, "training": run_training}


def main(argv=None):
    args = make_parser().parse_args(argv)
    args.policies = args.policies.split(",")
    if args.peer_pairs is None:
        args.peer_pairs = args.pairs
    names = args.only.split(",")
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise _core.ArgumentError(f"--only must be one of {', '.join(SCENARIOS)}, got {unknown[0]!r}")
    if args.pairs < 1 or args.peer_pairs < 1 or args.phase < 2:
        raise _core.ArgumentError("--pairs and --peer-pairs must be at least 1, --phase at least 2, got "
                                  f"{args.pairs}, {args.peer_pairs} and {args.phase}")  # fmt: skip
    cells = Cells(args.results)
    with tempfile.TemporaryDirectory(prefix="drapps-experiment-") as folder:
        data = args.data or pictures.make_images(folder)
        for name in names:
            page = SCENARIOS[name](name, cells, args, Place(data, args.envs))
            print(f"## {name}\n\n{page}")
            if args.into:
                bench_table.write_section(args.into, f"results-adapt-{name}", page)
    return 0
