"""The program `drapps`: one file per subcommand.

A subcommand is a module with HELP, add_arguments(parser) and run(args), which returns an exit status (None: 0).  A
subcommand that parses its own arguments has main(argv) in place of run.  Wrong usage ends with status 2, a failure with
1, Ctrl-C with 130, each with one line on stderr.  Slow imports are made in main, which handles Ctrl-C.
"""

import os
import sys
from importlib import import_module

COMMANDS = (
    "bench", "burn", "cat", "codec", "experiment", "info", "ls", "ops", "pack", "plan", "preview", "profile", "report",
    "scheduler", "serve", "top", "trace", "unpack", "verify",
)  # fmt: skip


def make_parser():
    """Return the parser of all subcommands."""
    import argparse

    parser = argparse.ArgumentParser(prog="drapps", description="Data loading and preprocessing for training.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for name in COMMANDS:
        module = _module(name)
        module.add_arguments(commands.add_parser(name, help=module.HELP, description=f"{module.HELP}."))
    return parser


def _module(name):
    return import_module(f"drapps.cli.cmd_{name}")


def main(argv=None):
    """Run a command line; return the exit status."""
    try:
        return _outcome(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)


def _outcome(argv):
    from drapps import _core

    try:
        return _run(argv) or 0
    except BrokenPipeError:  # `drapps ops | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except _core.ArgumentError as error:
        return _fail(error, 2)
    except (_core.Error, OSError) as error:
        return _fail(error, 1)


def _run(argv):
    if argv and argv[0] in COMMANDS and hasattr(_module(argv[0]), "main"):
        return _module(argv[0]).main(argv[1:])
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.version:
        from drapps import _core

        return print(_core.version())
    if not args.command:
        parser.print_help()
        return 2
    return _module(args.command).run(args)


def _fail(error, status):
    from drapps.printable import printable

    text = str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
    print(f"drapps: {printable(text)}", file=sys.stderr)
    return status
