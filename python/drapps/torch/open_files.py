"""Finds what a data set holds that does not survive a fork.  Forked processes share the position in an open file: each
moves it for all.  Threads do not exist in the child.

With torch's default, no workers, such a data set works; so drapps starts no workers for it unless the user asks for
them.  Attributes, lists of them, and data sets inside are searched.
"""

from collections import deque
from itertools import islice
from threading import Thread
from types import FunctionType, ModuleType

from torch.utils.data import Dataset

DEPTH = 2  # things in things that are looked into; data sets, lists and dicts do not count
FIRST, MOST = 16, 2000  # entries of a list, things in all
HANDLES = ("h5py", "lmdb", "sqlite3", "concurrent.futures", "multiprocessing.pool")  # not for use after a fork
HARMLESS = {"logging", "mmap", "pyarrow"}  # nobody reads from it, or it has no place that moves
LEAVES = (type(None), bool, int, float, complex, str, bytes, type, FunctionType, ModuleType)


def open_file_in(dataset):
    """Where a data set holds an open file, or something like it: the name of an attribute; None: not found."""
    todo, seen = deque([(type(dataset).__name__, dataset, DEPTH)]), set()
    while todo and len(seen) < MOST:
        name, thing, depth = todo.popleft()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        try:
            if _is_shared(thing):
                return name
            inside = depth - (not isinstance(thing, (list, tuple, dict, Dataset)))
            if inside >= 0:
                todo.extend((*part, inside) for part in _parts(name, thing))
        except Exception:  # it cannot be looked at: a proxy of something that is gone, a dict that another thread fills
            continue
    return None


def _root(thing):
    return type(thing).__module__.partition(".")[0]


def _is_handle(thing):
    module = type(thing).__module__
    return any(module == name or module.startswith(name + ".") for name in HANDLES)


def _is_shared(thing):
    if _is_handle(thing):
        return bool(thing) or _root(thing) != "h5py"  # which says so when it is closed
    if isinstance(thing, Thread):
        return thing.is_alive()
    if _root(thing) in HARMLESS or not callable(getattr(type(thing), "fileno", None)):
        return False
    try:
        return thing.fileno() > 2 and _is_read(thing)
    except Exception:  # closed, or in memory
        return False


def _is_read(thing):
    readable = getattr(thing, "readable", True)
    return readable() if callable(readable) else bool(readable)


def _parts(name, thing):
    if isinstance(thing, (list, tuple)):
        found = ((f"{name}[{i}]", part) for i, part in enumerate(islice(thing, FIRST)))
    elif isinstance(thing, dict):
        found = ((f"{name}[{key!r}]", part) for key, part in islice(thing.items(), FIRST))
    elif isinstance(thing, Thread) or _root(thing) in HARMLESS:  # a thread holds the error output, not to read it
        found = ()
    else:
        found = ((f"{name}.{key}", part) for key, part in getattr(thing, "__dict__", {}).items())
    return [row for row in found if not isinstance(row[1], LEAVES)]
