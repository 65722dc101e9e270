"""What a data set holds that does not survive a fork.  Processes that are forked share the place in an open file: each
moves it for all.  Threads are not in the child.

With torch's default, no workers, such a data set is right; so nobody who did not ask for workers gets any then.  It is
looked for where data sets have it: in attributes, lists of them, and data sets inside.
"""

from itertools import islice
from threading import Thread
from types import FunctionType, ModuleType

DEPTH, FIRST, MOST = 4, 16, 1000  # levels, entries of a list, things of a level that are looked at
HANDLES = ("h5py", "lmdb", "sqlite3", "concurrent.futures", "multiprocessing.pool")  # not for use after a fork
HARMLESS = {"logging", "mmap", "pyarrow", "threading"}  # nobody reads from it, or it has no place that moves
LEAVES = (type(None), bool, int, float, complex, str, bytes, type, FunctionType, ModuleType)


def open_file_in(dataset):
    """Where a data set holds an open file, or something like it: the name of an attribute; None: not found."""
    level, seen = [(type(dataset).__name__, dataset)], set()
    for _ in range(DEPTH):
        for name, thing in level:
            if _is_shared(thing):
                return name
        inside = {id(thing): (name, thing) for row in level for name, thing in _parts(*row)}
        seen.update(id(thing) for _, thing in level)
        level = [row for key, row in islice(inside.items(), MOST) if key not in seen]
    return None


def _root(thing):
    return type(thing).__module__.partition(".")[0]


def _is_shared(thing):
    if type(thing).__module__.startswith(HANDLES) or (isinstance(thing, Thread) and thing.is_alive()):
        return True
    if _root(thing) in HARMLESS or not callable(getattr(type(thing), "fileno", None)):
        return False
    try:
        return thing.fileno() > 2 and (not hasattr(thing, "readable") or thing.readable())
    except Exception:  # closed, or in memory
        return False


def _parts(name, thing):
    if isinstance(thing, (list, tuple)):
        found = ((f"{name}[{i}]", part) for i, part in enumerate(islice(thing, FIRST)))
    elif isinstance(thing, dict):
        found = ((f"{name}[{key!r}]", part) for key, part in islice(thing.items(), FIRST))
    elif _root(thing) in HARMLESS:
        found = ()
    else:
        found = ((f"{name}.{key}", part) for key, part in getattr(thing, "__dict__", {}).items())
    return [row for row in found if not isinstance(row[1], LEAVES)]
