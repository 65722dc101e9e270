"""drapps burn: load the machine on purpose, to see its effect on training.  The program is tools/burn.c."""

import os
from pathlib import Path

HELP = "load CPU, memory, storage or network on purpose, for a given time"


def add_arguments(parser):
    parser.add_argument("arguments", nargs="*", help="see `drapps burn --help`")


def main(argv):
    """Replace this process by the program: it gets the signals, and its exit status is the command's."""
    program = Path(__file__).parents[1] / "drapps-burn"
    os.execv(program, [str(program), *argv])
