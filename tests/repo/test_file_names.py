"""File names are unique in the tree, so that `jpeg.c:88` says enough."""

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRY_POINTS = {"__init__.py", "__main__.py"}


def repeated(paths):
    """{name: [paths]} of the C files, headers and Python modules whose names occur more than once."""
    places = defaultdict(list)
    for path in map(Path, paths):
        if path.suffix in (".c", ".h", ".py") and path.name not in ENTRY_POINTS and path.parts[:2] != ("tests", "unit"):
            places[path.name].append(str(path))
    return {name: found for name, found in places.items() if len(found) > 1}


def test_names_are_unique():
    try:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    assert repeated(path for path in listed.splitlines() if (ROOT / path).exists()) == {}


def test_repeated_names_are_found():
    paths = ["src/a/x.c", "src/b/x.c", "python/y.py", "python/y.pyi", "a/__init__.py", "b/__init__.py",
             "tests/unit/a/test_x.c", "tests/unit/b/test_x.c"]
    assert repeated(paths) == {"x.c": ["src/a/x.c", "src/b/x.c"]}
