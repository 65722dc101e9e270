"""The examples run: those in docstrings as they stand, the programs on little data.  The stubs are up to date."""

import ast
import doctest
import importlib
import pathlib
import re
import subprocess
import sys

import pytest
from imagesets import write_folder

import drapps
from drapps import _core

MODULES = ["about", "batch", "jpeg", "loader", "optable", "pipeline"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


# The programs of examples/ with arguments that make them quick, and what their last line says.
PROGRAMS = {
    "train_torch.py": (["--images", "20", "--epochs", "2"], r"epoch 1: 40 samples, \d+ samples/s, accuracy"),
    "unet3d.py": (["--volumes", "10", "--epochs", "2"], "epoch 1: 10 volumes in"),
    "detection.py": (["--images", "20", "--epochs", "2"], "epoch 1: 20 images in"),
}
PARTS = {"demo.py", "demo_data.py", "training.py", "vision.py"}  # `make demo`, which takes longer, and what others import


def test_every_program_is_run():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {*PROGRAMS, *PARTS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path):
    arguments, last = PROGRAMS[name]
    done = subprocess.run([sys.executable, ROOT / "examples" / name, *arguments], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert re.match(last, done.stdout.splitlines()[-1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_folder(tmp_path / "set", n=6)
    pipe = drapps.read(folder).decode().resize((32, 32))
    with pipe.loader(batch_size=4, output="numpy") as loader:
        names = {"drapps": drapps, "folder": folder, "pipe": pipe, "loader": loader}
        result = doctest.testmod(importlib.import_module(f"drapps.{name}"), extraglobs=names)
    assert result.attempted > 0 or name == "batch"
    assert result.failed == 0


def test_stubs_are_up_to_date():
    script = ROOT / "scripts" / "make_stubs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def stubbed(path):
    """(class or None, name) of every class, function and method in a stub."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield None, node.name
        for part in getattr(node, "body", []):
            if isinstance(node, ast.ClassDef) and isinstance(part, ast.FunctionDef) and part.name != "__buffer__":
                yield node.name, part.name  # __buffer__ can be seen from Python 3.12 on


STUBS = sorted(pathlib.Path(drapps.__file__).parent.glob("*.pyi"))


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.name)
def test_stubs_name_what_there_is(path):
    module = importlib.import_module("drapps" if path.stem == "__init__" else f"drapps.{path.stem}")
    for owner, name in stubbed(path):
        assert hasattr(getattr(module, owner) if owner else module, name), f"{owner}.{name}"


def test_stubs_miss_nothing():
    """Every public function and class of the extension is in its stub."""
    told = {name for owner, name in stubbed(pathlib.Path(drapps.__file__).parent / "_core.pyi") if owner is None}
    assert {name for name in dir(_core) if not name.startswith("_")} == told
