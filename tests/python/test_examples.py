"""The examples run: those in docstrings as they stand, the programs on little data.  The stubs are up to date."""

import ast
import doctest
import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch
from cocosets import make_coco
from imagesets import write_folder

import drapps
from drapps import _core
from benchmarks.experiments.disturb import MemoryLimit

PACKAGE = pathlib.Path(drapps.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = sorted(".".join((folder.name, *path.relative_to(folder).with_suffix("").parts))
                 for folder in (PACKAGE, ROOT / "benchmarks")
                 for path in folder.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


# The programs of examples/ with arguments that make them quick, and what their last line says.
PROGRAMS = {
    "train_torch.py": (["--images", "20", "--epochs", "2"], r"epoch 1: 40 samples, \d+ samples/s, accuracy"),
    "unet3d.py": (["--volumes", "10", "--epochs", "2"], "epoch 1: 10 volumes in"),
    "ask_server.py": ([], r"\d+ bytes in all"),
    "detection.py": (["--images", "20", "--epochs", "2"], "epoch 1: 20 images in"),
}
# `make demo`, which takes longer, and what others import.
PARTS = {"demo.py", "demo_data.py", "training.py", "vision.py"}


def test_every_program_is_run():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {*PROGRAMS, *PARTS}


@pytest.fixture
def small_machine():
    """What a process calls to be on a machine with 4 GB of memory; where that cannot be had, it has what there is."""
    try:
        group = MemoryLimit(4 * 2**30)
    except SystemExit:
        yield None
        return
    yield lambda: group.add(os.getpid())
    group.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path, small_machine):
    arguments, last = PROGRAMS[name]
    done = subprocess.run([sys.executable, ROOT / "examples" / name, *arguments], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120, preexec_fn=small_machine)
    assert done.returncode == 0, done.stderr
    assert re.match(last, done.stdout.splitlines()[-1])
    assert list(tmp_path.iterdir()) == []


def test_modules_with_examples():
    assert {"drapps.loader", "drapps.pipeline", "drapps.ledger", "drapps.torch.dataloader",
            "benchmarks.experiments.statistics"} <= set(MODULES)  # fmt: skip


@pytest.fixture
def given(tmp_path, monkeypatch):
    """What docstrings take for granted, beside what is in their module; the current folder has the
    files that they name."""
    monkeypatch.chdir(tmp_path)
    folder = write_folder(tmp_path / "set", n=6)
    (tmp_path / "train2017").mkdir()
    make_coco(tmp_path / "train2017").rename(tmp_path / "instances_train2017.json")
    pipe = drapps.read(folder).decode().resize((32, 32))
    with pipe.loader(batch_size=4, output="numpy") as loader, \
            drapps.DataLoader(torch.arange(6), batch_size=3, num_workers=1) as dataloader:  # fmt: skip
        everywhere = {"drapps": drapps, "torch": torch, "folder": folder, "pipe": pipe, "dataset": torch.arange(6)}
        yield lambda name: {**everywhere, "loader": dataloader if name.startswith("drapps.torch.") else loader}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, given):
    result = doctest.testmod(importlib.import_module(name), extraglobs=given(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_stubs_are_up_to_date():
    script = ROOT / "scripts" / "make_stubs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def stubbed(path):
    """(class or None, name) of every class, function, constant and method in a stub."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
            yield None, node.target.id
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield None, node.name
        for part in getattr(node, "body", []):
            if isinstance(node, ast.ClassDef) and isinstance(part, ast.FunctionDef) and part.name != "__buffer__":
                yield node.name, part.name  # __buffer__ can be seen from Python 3.12 on


STUBS = sorted(PACKAGE.glob("*.pyi"))


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.name)
def test_stubs_name_what_there_is(path):
    module = importlib.import_module("drapps" if path.stem == "__init__" else f"drapps.{path.stem}")
    for owner, name in stubbed(path):
        assert hasattr(getattr(module, owner) if owner else module, name), f"{owner}.{name}"


def test_stubs_miss_nothing():
    """Every public function and class of the extension is in its stub."""
    told = {name for owner, name in stubbed(PACKAGE / "_core.pyi") if owner is None}
    assert {name for name in dir(_core) if not name.startswith("_")} == told
