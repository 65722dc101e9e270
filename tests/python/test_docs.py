"""The examples in docstrings run as they stand, and the stubs are up to date."""

import doctest
import importlib
import pathlib
import subprocess
import sys

import pytest
from conftest import write_folder

import drapps

MODULES = ["about", "batch", "loader", "optable", "pipeline"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


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


def test_stubs_name_what_there_is():
    """Every public class and function of a stub exists, and the other way round."""
    import ast

    package = pathlib.Path(drapps.__file__).parent
    for stub in sorted(package.glob("*.pyi")):
        module = importlib.import_module("drapps" if stub.stem == "__init__" else f"drapps.{stub.stem}")
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                there = getattr(module, node.name)
                for part in getattr(node, "body", []):
                    if isinstance(node, ast.ClassDef) and isinstance(part, ast.FunctionDef):
                        assert hasattr(there, part.name), f"{stub.name}: {node.name}.{part.name}"
