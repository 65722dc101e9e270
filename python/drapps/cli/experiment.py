"""drapps experiment: reproduce a table of the evaluation.  The work and the arguments are in drapps.experiment."""

HELP = "reproduce a table of the evaluation, with statistics"


def add_arguments(parser):
    parser.add_argument("arguments", nargs="*", help="see `drapps experiment --help`")


def main(argv):
    """Takes over the rest of the command line."""
    from drapps.experiment import command, planted

    if argv[:1] == ["planted"]:
        return planted.main(argv[1:])
    return command.main(argv)
