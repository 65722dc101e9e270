"""Fixtures of the tests of the Python package."""

import os
import pathlib
import signal
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # for the modules that tests share

from imagesets import train, write_folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory):
    """What earlier runs have learnt of the samples' costs changes nothing here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_process_group():
    """Tests that look for processes left behind look in their process group; pytest-xdist runs
    several tests at a time."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.setpgid(0, 0)


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c():
    """Interrupts are what they are in a terminal: shells have programs in the background ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of JPEG files, one folder per class."""
    return write_folder(tmp_path_factory.mktemp("images") / "set")


@pytest.fixture
def pipe(folder):
    """The usual chain over the folder."""
    return train(folder)


@pytest.fixture
def leaves_nothing():
    """Neither processes nor threads nor open files are left behind by the test."""
    from loadersets import none_left

    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    yield
    assert none_left()
    assert len(os.listdir("/proc/self/fd")) <= before[0] + 2 and threading.active_count() <= before[1]
