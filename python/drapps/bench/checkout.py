"""Finds the `benchmarks` package of a checkout: the wheel does not contain it."""

import os
import sys
from importlib import import_module
from pathlib import Path

from drapps import _core

VARIABLE = "DRAPPS_CHECKOUT"


def find_checkout(command):
    """Return the folder that DRAPPS_CHECKOUT names, else the nearest checkout at or above the working folder.

    command: the command that needs it, for the error message.
    """
    named = os.environ.get(VARIABLE)
    here = Path.cwd()
    for folder in [Path(named)] if named else [here, *here.parents]:
        if (folder / "benchmarks" / "__init__.py").is_file() and (folder / "include" / "drapps").is_dir():
            return folder.resolve()
    where = f"{VARIABLE} is {named!r}" if named else f"{here} is not inside one and {VARIABLE} is not set"
    raise _core.ArgumentError(f"{command} needs a checkout of drapps; {where}")


def import_benchmark(module, command):
    """Import a module of the checkout, such as "benchmarks.loaders.loaders_command"."""
    folder = str(find_checkout(command))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return import_module(module)
