"""drapps experiment adapt: arguments, what is run, what is shown."""

import argparse
import os
import sys
import tempfile

from drapps import _core
from drapps.bench import bench_table, environments
from benchmarks.experiments import adapt, adapt_tables, adapt_training, pictures
from benchmarks.experiments.cells import Cells
from benchmarks.experiments.adapt_phases import Place

DESCRIPTION = "Does a loader that turns its own knobs do as well as the best setting for each moment?"


def make_parser():
    parser = argparse.ArgumentParser(prog="drapps experiment adapt", description=DESCRIPTION)
    parser.add_argument("--only", default=",".join(SCENARIOS), help=f"scenarios, of {', '.join(SCENARIOS)}")
    parser.add_argument("--data", metavar="DIR", help="folder of JPEG files, a class a folder (default: made for it)")
    parser.add_argument("--envs", default=environments.default_folder(), help="the peers' environments")
    parser.add_argument("--results", default="adapt.jsonl", help="file of cells: what is there is not run again")
    parser.add_argument("--pairs", type=int, default=12, help="rounds of each contender (default: 12)")
    parser.add_argument("--peer-pairs", type=int, help="rounds of torch and tf.data (default: as --pairs)")
    parser.add_argument("--phase", type=float, default=20, help="seconds of a phase (default: 20)")
    parser.add_argument("--search-seconds", type=float, default=8, help="seconds of a setting under a condition")
    parser.add_argument("--search-rounds", type=int, default=2)
    parser.add_argument("--policies", default="analytic", help="comma-separated (default: analytic)")
    parser.add_argument("--step-ms", type=float, default=80, help="how long the slow consumer holds a batch of 64")
    parser.add_argument("--samples", type=int, default=20_000, help="of a training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="neither torch nor tf.data")
    parser.add_argument("--into", metavar="FILE", help="write each table into the section results-adapt-SCENARIO")
    return parser


def progress(text):
    print(text, file=sys.stderr, flush=True)


def run_adapt(name, cells, options, place):
    """The Markdown of one scenario."""
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


def run_trainer(name, cells, options, place):
    """The Markdown of the trainings."""
    return adapt_tables.trainer(adapt_training.compare(adapt_training.measure(cells, options, place.data, progress)))


SCENARIOS = {"steps": run_adapt, "quota": run_adapt, "demand": run_adapt, "trainer": run_trainer}


def main(argv=None):
    args = make_parser().parse_args(argv)
    args.policies = args.policies.split(",")
    if args.peer_pairs is None:
        args.peer_pairs = args.pairs
    names = args.only.split(",")
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise _core.ArgumentError(f"--only {unknown[0]}: no scenario is called so; there are {', '.join(SCENARIOS)}")
    if args.pairs < 1 or args.peer_pairs < 1 or args.phase < 2:
        raise _core.ArgumentError(f"--pairs {args.pairs} --peer-pairs {args.peer_pairs} --phase {args.phase}: at least 1, "
                                  "1 and 2 s")  # fmt: skip
    cells = Cells(args.results)
    with tempfile.TemporaryDirectory(prefix="drapps-experiment-") as folder:
        data = args.data or pictures.make_images(folder)
        for name in names:
            page = SCENARIOS[name](name, cells, args, Place(data, args.envs))
            print(f"## {name}\n\n{page}")
            if args.into:
                bench_table.write_section(args.into, f"results-adapt-{name}", page)
    return 0
