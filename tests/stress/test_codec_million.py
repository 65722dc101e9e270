"""A million random arrays through random codecs and back, whole and damaged (tests/unit/codec/chain/codec_trial.c)."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ROUNDS = 1_000_000


def test_a_million_arrays_come_back():
    folders = [os.environ["DRAPPS_BUILD"]] if "DRAPPS_BUILD" in os.environ else sorted(ROOT.glob("build*"))
    programs = [pathlib.Path(folder) / "tests/unit/unit_codec_codec_trips" for folder in folders]
    program = next((path for path in programs if path.exists()), None)
    if program is None:
        pytest.skip("unit_codec_codec_trips is not built (meson setup build -Dtests=true)")
    done = subprocess.run([program, str(ROUNDS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
