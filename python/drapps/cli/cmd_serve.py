"""drapps serve: data sets over HTTP, next to their storage.  The program is tools/drapps_serve.c."""

import os
from pathlib import Path

HELP = "serve data sets over HTTP, with their first ops run next to the storage"


def add_arguments(parser):
    parser.add_argument("arguments", nargs="*", help="see `drapps serve --help`")


def main(argv):
    """Replace this process by the program: it gets the signals, and its exit status is the command's."""
    program = Path(__file__).parents[1] / "drapps-serve"
    os.execv(program, [str(program), *argv])
