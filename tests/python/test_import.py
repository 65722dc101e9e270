"""import drapps is light, and every public name is there."""

import inspect

import pytest
from imagesets import run_python

import drapps


def test_import_loads_no_framework():
    done = run_python("import sys, drapps; print(' '.join(m.split('.')[0] for m in sys.modules))")
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "torch", "rich", "PIL", "tensorflow", "jax"}


def test_the_loader_can_be_imported_whatever_torch_takes_for_the_default_device():
    pytest.importorskip("torch")
    done = run_python("import torch, drapps; torch.set_default_device('meta'); print(drapps.DataLoader)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", drapps.__all__)
def test_public_names_exist(name):
    assert getattr(drapps, name) is not None
    assert name in dir(drapps)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import pydoc, drapps
names = dir(drapps)
loaders = ("DataLoader", "DRAADPDataLoader", "DRAPPSLoader")
print("read" in names, "Monitor" in names, [n for n in names if n in loaders])
print("IMAGENET_MEAN" in pydoc.render_doc(drapps))
"""


def test_help_without_torch():
    done = run_python(WITHOUT_TORCH)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True True []", "True"]


def test_unknown_name():
    with pytest.raises(AttributeError, match="no_such_thing"):
        print(drapps.no_such_thing)


def test_errors_are_builtins_too():
    assert issubclass(drapps.ArgumentError, ValueError)
    assert issubclass(drapps.FileMissingError, FileNotFoundError)
    assert issubclass(drapps.IOError, OSError)
    assert issubclass(drapps.FormatError, ValueError) and issubclass(drapps.FormatError, OSError)
    assert str(drapps.FormatError("a.png: no PNG")) == "a.png: no PNG"
    assert issubclass(drapps.NotFoundError, KeyError)
    assert issubclass(drapps.OutOfMemoryError, MemoryError)
    assert issubclass(drapps.ForkedError, RuntimeError)
    names = [n for n in drapps.__all__ if n.endswith("Error")]
    assert all(issubclass(getattr(drapps, name), drapps.Error) for name in names)


def test_every_op_is_a_method_and_a_function():
    from drapps.optable import TABLE

    for name, row in TABLE.items():
        function = inspect.signature(getattr(drapps.ops, name))
        method = inspect.signature(getattr(drapps.Pipeline, name))
        assert list(method.parameters)[1:-3] == list(function.parameters)
        assert set(function.parameters) == {p["name"] for p in row["params"]}
        assert list(method.parameters)[-3:] == ["field", "fields", "out"]
        assert row["summary"][1:] in getattr(drapps.Pipeline, name).__doc__
        for p in row["params"]:
            assert p["doc"] in getattr(drapps.ops, name).__doc__
