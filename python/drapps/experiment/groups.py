"""Limits of the kernel on a child process: control groups of version 1, made for one run and removed after it."""

import os
import uuid
from contextlib import contextmanager

ROOT = "/sys/fs/cgroup"


class NoGroups(Exception):
    """This machine lets nobody, or not this user, make such a group."""


@contextmanager
def group(controller, **values):
    """A group with values written into its files (names with dots as __); gives its folder."""
    folder = f"{ROOT}/{controller}/drapps-{uuid.uuid4().hex[:12]}"
    try:
        os.mkdir(folder)
    except OSError as error:
        raise NoGroups(f"{folder}: {error.strerror}; needs root and control groups of version 1") from error
    try:
        for name, value in values.items():
            _write(f"{folder}/{name.replace('__', '.')}", value)
        yield folder
    finally:
        _leave(folder)
        os.rmdir(folder)


def enter(folder):
    """Puts the calling process into a group: for a child before it becomes the program."""
    _write(f"{folder}/cgroup.procs", os.getpid())


def device_of(path):
    """The disk that holds a file, as "major:minor"; of a partition, its disk."""
    number = os.stat(path).st_dev
    entry = os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if os.path.exists(f"{entry}/partition"):
        entry = os.path.dirname(entry)
    try:
        with open(f"{entry}/dev") as file:
            return file.read().strip()
    except OSError as error:
        raise NoGroups(f"{path} is not on a disk of its own: {error}") from error


def _write(path, value):
    with open(path, "w") as file:
        file.write(str(value))


def _leave(folder):
    """Whoever is still inside goes back to the group above: else it cannot be removed."""
    with open(f"{folder}/cgroup.procs") as file:
        pids = file.read().split()
    for pid in pids:
        try:
            _write(f"{os.path.dirname(folder)}/cgroup.procs", pid)
        except OSError:
            pass  # it has just ended
