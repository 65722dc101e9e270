"""Finds the programs of tests/golden, built with -Dtests=true: in the folder DRAPPS_BUILD, else in build*/."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find_program(name):
    folders = [os.environ["DRAPPS_BUILD"]] if "DRAPPS_BUILD" in os.environ else sorted(ROOT.glob("build*"))
    for folder in folders:
        program = pathlib.Path(folder) / "tests" / "golden" / name
        if program.exists():
            return program
    pytest.skip(f"{name} is not built (meson setup build -Dtests=true)")
