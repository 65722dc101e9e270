"""drapps experiment: reproduce a table of the evaluation.  The code is in the benchmarks package of a checkout."""

import argparse

HELP = "reproduce a table of the evaluation (needs a checkout)"


# name: (summary, module of the checkout)
EXPERIMENTS = {
    "adapt": ("is a policy as good as the best setting for each moment?", "adapt_command"),
    "ahead": ("are batches ready when they are needed, without a larger buffer than necessary?", "ahead.ahead_command"),
    "monitor": ("does the monitor read the machine correctly, and what does it cost?", "monitor.monitor_command"),
    "planted": ("does `drapps profile` find planted bottlenecks?", "planted"),
    "ranges": ("which part of the bytes do random crops need?", "ranges_command"),
    "rl": ("does the PPO of drapps learn as well as Stable-Baselines3's, and how much faster?", "rl.rl_command"),
    "serve": ("how fast, how fair and how steady is `drapps serve`?", "sophon.server"),
    "sophon": ("what does it bring to run ops next to the storage?", "sophon.sophon_command"),
    "storage": ("what do shards, codecs and the planner gain?", "storage.storage_command"),
    "testbed": ("run a server and a client with a slow link between them", "testbed.testbed_command"),
}


def add_arguments(parser):
    names = parser.add_subparsers(dest="experiment", metavar="experiment", required=True, title="experiments",
                                  description="`drapps experiment NAME --help` lists the arguments of an experiment")
    for name, (text, _) in EXPERIMENTS.items():
        names.add_parser(name, help=text, add_help=False)


def main(argv):
    """Run the rest of the command line."""
    from drapps.bench.checkout import import_benchmark

    if argv and argv[0] in EXPERIMENTS:
        module = f"benchmarks.experiments.{EXPERIMENTS[argv[0]][1]}"
        return import_benchmark(module, f"drapps experiment {argv[0]}").main(argv[1:])
    parser = argparse.ArgumentParser(prog="drapps experiment", description=f"{HELP}.")
    add_arguments(parser)
    parser.parse_args(argv)
