"""Says so, in words, where the Python is too old for drapps."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(f"drapps needs Python 3.11 or later; {sys.executable} is {sys.version.split()[0]}.\n"
             "Name another one: make PYTHON=python3.12 test")
