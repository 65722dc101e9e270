"""The system's page cache: which files a data set is read from, and how these are dropped from memory.

posix_fadvise drops a file's clean pages for everybody who may open it; /proc/sys/vm/drop_caches drops everything, for
root.  How many bytes an epoch then read from a device says whether it was cold.
"""

import os
import re
import shutil
from contextlib import suppress

EVERYTHING = "/proc/sys/vm/drop_caches"
USABLE = 0.8  # of the memory that is free or can be freed


def files_of(dataset, ids):
    """Paths of the files that these samples are read from, without repeats; [] where they are none on this machine.

    A data set's samples are files below its folder, files of a list, or parts of one or several tars.
    """
    root = _local(dataset.name)
    if root is None:
        return []
    if dataset.format == "array":
        return []
    if os.path.isfile(root) and root.endswith(".tar"):
        return [root]
    tars = _tars(root)
    if tars:
        return tars
    folder = root if os.path.isdir(root) else os.path.dirname(root)
    paths = (os.path.join(folder, dataset.key(id)) for id in ids)
    return [path for path in dict.fromkeys(paths) if os.path.isfile(path)]


def _local(name):
    """The path that a data set's name begins with; subsets add a few words to it."""
    path = re.sub(r"( \([^()]*\))+$", "", name)
    return None if re.match(r"[a-z0-9]+://", path) else path


def _tars(pattern):
    """Files of a pattern or range of tars: train-{000..099}.tar, a*.tar."""
    import glob

    found = re.search(r"\{(\d+)\.\.(\d+)\}", pattern)
    if found:
        first, last = found.groups()
        numbers = (str(i).zfill(len(first)) for i in range(int(first), int(last) + 1))
        return [path for n in numbers for path in _tars(pattern[: found.start()] + n + pattern[found.end() :])]
    if pattern.endswith(".tar"):
        return sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern] * os.path.isfile(pattern)
    return []


def below(folder):
    """All files below a folder, with their sizes: [(path, bytes), ...]."""
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                path = os.path.join(where, name)
                found.append((path, os.stat(path).st_size))
    return found


def drop(paths, everything=False):
    """Drops the pages of files, written ones after they are on the device; whether that was possible for all."""
    dropped = True
    for path in paths:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            dropped = False
            continue
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError:
            dropped = False
        finally:
            os.close(handle)
    if everything:
        os.sync()
        with open(EVERYTHING, "w", encoding="ascii") as file:
            file.write("3\n")
    return dropped


def may_drop_everything():
    """Whether this process may drop the whole page cache."""
    return os.access(EVERYTHING, os.W_OK)


def room():
    """Bytes that the page cache may grow to: what is available, within the container's limit."""
    from drapps.build_info import info

    available = info()["limits"]["memory_bytes"]
    with suppress(OSError, StopIteration, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        available = min(
            available, next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
        )
    return int(USABLE * available)


def free_disk(folder):
    """Bytes that are free where a folder is, or would be."""
    folder = os.path.abspath(folder)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free
