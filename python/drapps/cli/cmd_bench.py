"""drapps bench: measure drapps and other loaders.  The arguments are parsed in drapps.bench."""

HELP = "measure drapps and compare it with other loaders"


def add_arguments(parser):
    parser.add_argument("arguments", nargs="*", help="see `drapps bench --help`")


def main(argv):
    """Run the rest of the command line."""
    from drapps.bench import bench_command

    return bench_command.main(argv)
