"""drapps experiment: reproduce a table of the evaluation.  The work and the arguments are in drapps.experiment."""

import argparse

HELP = "reproduce a table of the evaluation, with statistics"


EXPERIMENTS = {
    "adapt": "does a policy do as well as the best setting for each moment?",
    "ahead": "are batches ready when they are needed, and no more of them than that takes?",
    "monitor": "does the monitor see what the machine does, and what does it cost?",
    "planted": "does `drapps profile` name bottlenecks that were put there?",
}


def add_arguments(parser):
    names = parser.add_subparsers(dest="experiment", metavar="experiment", required=True, title="experiments",
                                  description="`drapps experiment NAME --help` lists the arguments of one")  # fmt: skip
    for name, text in EXPERIMENTS.items():
        names.add_parser(name, help=text, add_help=False)


def main(argv):
    """Takes over the rest of the command line."""
    from drapps.experiment import command, planted
    from drapps.experiment.ahead import command as ahead
    from drapps.experiment.monitor import command as monitor

    programs = {"adapt": command, "ahead": ahead, "monitor": monitor, "planted": planted}
    if argv and argv[0] in programs:
        return programs[argv[0]].main(argv[1:])
    parser = argparse.ArgumentParser(prog="drapps experiment", description=f"{HELP}.")
    add_arguments(parser)
    parser.parse_args(argv)
