"""tests/layers.py finds wrong includes and imports, and finds none in this tree."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(root):
    script = ROOT / "tests" / "layers.py"
    return subprocess.run([sys.executable, script, root], capture_output=True, text=True)


def test_this_tree():
    done = run(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path, text, complaint", [
    ("src/base/a.c", '#include "exec/pool.h"', "exec comes after base"),
    ("src/op/image/a.c", '#  include "../../graph/node.h"', "graph comes after op"),
    ("src/base/a.c", '#include "base/nowhere.h"', "no such file"),
    ("src/nonsense/a.c", "", "not in the list of layers"),
    ("include/drapps/a.h", '#include "base/alloc.h"', "inside the library"),
    ("examples/c/a.c", '#include "../../src/base/alloc.h"', "inside the library"),
])
def test_wrong_includes_are_found(tmp_path, path, text, complaint):
    for header in ("src/base/alloc.h", "src/exec/pool.h", "src/graph/node.h", path):
        (tmp_path / header).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / header).write_text("")
    (tmp_path / path).write_text(text + "\n")
    done = run(tmp_path)
    assert done.returncode == 1
    assert complaint in done.stdout


def test_includes_that_go_up_are_fine(tmp_path):
    for header in ("src/base/alloc.h", "include/drapps/data.h"):
        (tmp_path / header).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / header).write_text("")
    (tmp_path / "src/exec").mkdir()
    (tmp_path / "src/exec/meson.build").write_text("configure_file(output: 'made.h', configuration: c)")
    (tmp_path / "src/exec/a.c").write_text(
        '#include <stdio.h>\n#include <drapps/data.h>\n#include "base/alloc.h"\n#include "exec/made.h"\n')
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path, text, complaint", [
    ("digest.py", "from drapps.pipeline import read", "helpers imports drapps.pipeline.read, but pipeline comes after"),
    ("procpool/a.py", "if True:\n    import drapps.torch.b", "torch comes after procpool"),
    ("passes/a.py", "class A:\n    from drapps import cli", "cli comes after passes"),
    ("passes/a.py", "import torch.utils.data", "must not need a framework"),
    ("new_module.py", "from drapps.loader import Loader", "pipeline comes after helpers"),
])
def test_wrong_imports_are_found(tmp_path, path, text, complaint):
    target = tmp_path / "python" / "drapps" / path
    target.parent.mkdir(parents=True)
    target.write_text(text + "\n")
    done = run(tmp_path)
    assert done.returncode == 1
    assert complaint in done.stdout


def test_imports_that_go_up_or_wait_are_fine(tmp_path):
    package = tmp_path / "python" / "drapps"
    (package / "torch").mkdir(parents=True)
    (package / "torch" / "a.py").write_text(
        "import torch\nfrom drapps import _core\nfrom drapps.loader import Loader\n"
    )
    (package / "pipeline.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n"
        "def loader():\n    from drapps.pyloader import PythonLoader\n")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
