"""Fixtures of the tests of the Python package."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # for the modules that tests share

from imagesets import train, write_folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of JPEG files, one folder per class."""
    return write_folder(tmp_path_factory.mktemp("images") / "set")


@pytest.fixture
def pipe(folder):
    """The usual chain over the folder."""
    return train(folder)
