"""Benchmarks and experiments that need a checkout of drapps; the wheel does not contain them.

    loaders/       `drapps bench loaders`: torch's DataLoader and drapps's on Python data sets
    experiments/   `drapps experiment`: tables of the evaluation
    run_all.py     `make bench`: checks the promises of docs/benchmarks.md
    c/             C programs: the bare loop that drapps is compared with, and the speed of the JPEG decoder

`drapps bench image` and `drapps bench jpeg` need no checkout: they are in drapps.bench.
"""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def child_environment(**more):
    """Return the environment of a child process that imports `benchmarks`, with more variables added."""
    paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
