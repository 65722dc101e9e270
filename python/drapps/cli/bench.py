"""drapps bench: run a workload here and beside other loaders.  The work and the arguments are in drapps.bench."""

HELP = "measure a workload, also beside other loaders"


def add_arguments(parser):
    parser.add_argument("arguments", nargs="*", help="see `drapps bench --help`")


def main(argv):
    """Takes over the rest of the command line."""
    from drapps.bench import command

    return command.main(argv)
