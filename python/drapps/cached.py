"""drapps.deterministic: results of Python functions kept on disk, so that later epochs and runs need not make them.

    class Scans(Dataset):
        @drapps.deterministic
        def prepare(self, i):
            return normalize(resample(load(self.paths[i])))

        def __getitem__(self, i):
            return random_crop(self.prepare(i))

The function runs as it is where no cache is active in the process.  drapps.DataLoader(cache=...) and
Pipeline.loader(cache=...) make one active where the samples are made; docs/cache.md says what a result is kept under.
"""

import contextlib
import functools
import json
import os
import threading
import time
import weakref
from collections import Counter

from drapps import _core
from drapps.digest import Unnamed, code_digest, digest
from drapps.plain_serialize import pack, unpack

TRIALS = 16  # calls that decide in "auto" mode
WORTH = 2  # how many times faster reading must be
DISK_BYTES_PER_S = 500e6  # what data sets that are larger than memory are read at
FORMAT = 1

_active = None  # in this process,
_here = threading.local()  # or, as .cache, in this thread alone


def deterministic(function=None, *, key=None):
    """Marks a function or method whose result depends on its arguments alone, so that it may be kept.

    key: a function of the same arguments that returns what decides the result (texts, numbers, tuples of them), for
        objects that cannot be told apart by their attributes, or that have some which do not matter.  Whatever it
        returns, the function's name and code belong to the key as well.

    >>> @drapps.deterministic
    ... def prepare(number):
    ...     return number * 2
    >>> prepare(4)
    8
    """
    if function is None:
        return functools.partial(deterministic, key=key)

    @functools.wraps(function)
    def call(*args, **kwargs):
        cache = getattr(_here, "cache", _active)
        if cache is None or cache.pid != os.getpid():
            return function(*args, **kwargs)
        return cache.call(call, args, kwargs)

    call.drapps_function, call.drapps_key = function, key
    return call


def activate(folder, limit=0, key="", adaptive=True):
    """Makes a cache active in this process; returns it.  The child of a fork activates its own.

    folder: where, or "auto": the user's cache folder, and only functions for which that was measured to pay.
    limit: bytes on disk of all that is kept in the folder; 0: half of what is free there.
    key: a text that belongs to the key of every result.
    adaptive: compressed where that is measured to pay; False: always.
    """
    global _active
    _active = Cache(folder, limit, key, adaptive)
    return _active


def deactivate():
    """Functions run as they are again."""
    global _active
    _active = None


@contextlib.contextmanager
def using(cache):
    """Makes a cache (or None) active for a while, in this thread."""
    before = vars(_here).copy()
    _here.cache = cache
    try:
        yield cache
    finally:
        vars(_here).clear()
        vars(_here).update(before)


def folder_text(folder):
    """Where a cache is, in words."""
    folder = os.fspath(folder)
    return "the user's cache folder, where that is measured to pay" if folder == "auto" else folder


def is_marked(function):
    """Whether its results may be kept."""
    return hasattr(function, "drapps_function")


class Cache:
    """The stores of some functions below one folder.  counts: where cache_hits and cache_misses are added up."""

    def __init__(self, folder, limit=0, key="", adaptive=True, counts=None):
        self.folder, self.limit, self.key, self.adaptive = os.fspath(folder), limit, key, adaptive
        self.counts = Counter() if counts is None else counts
        self.pid = os.getpid()
        self.stores = {}
        self.selves = weakref.WeakKeyDictionary()  # what was found out about an object, while it lives

    def call(self, wrapper, args, kwargs):
        """The function's result: kept, or made and put there."""
        kept = self.stores.get(wrapper)
        if kept is None:
            kept = self.stores[wrapper] = Kept(self, wrapper.drapps_function)
        if kept.refused:
            return wrapper.drapps_function(*args, **kwargs)
        return kept.call(self._name(wrapper, args, kwargs), args, kwargs)

    def _name(self, wrapper, args, kwargs):
        """The bytes that a result is kept under."""
        if wrapper.drapps_key is not None:
            return digest(wrapper.drapps_key(*args, **kwargs))
        try:
            return b"".join(map(self._digest, args)) + (digest(kwargs) if kwargs else b"")
        except Unnamed as error:
            name = wrapper.drapps_function.__qualname__
            raise _core.ArgumentError(f"{name}: {error}; say what decides the result by "
                                      "@drapps.deterministic(key=...)") from None  # fmt: skip

    def _digest(self, value):
        """Objects, mostly the data set, are looked through once."""
        if not hasattr(value, "__dict__") or type(value).__hash__ is not object.__hash__:
            return digest(value)
        known = self.selves.get(value)
        if known is None:
            known = self.selves[value] = digest(value)
        return known

    def stats(self):
        """Counters of each function's store, by its name."""
        return {kept.name: {**kept.store.stats(), "why": kept.why} for kept in self.stores.values() if kept.store}

    def close(self):
        for kept in self.stores.values():
            kept.close()
        self.stores = {}


class Kept:
    """One function and its store."""

    def __init__(self, cache, function):
        self.function = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.why, self.refused = "asked for", False
        self.counts = cache.counts
        self.calls = self.call_ns = 0  # of the trial
        identity = {"format": FORMAT, "python": self.name, "code": code_digest(function).hex(), "key": cache.key}
        try:
            name = json.dumps(identity, sort_keys=True)
            self.store = _core.open_store(cache.folder, name, cache.limit, cache.adaptive)
        except _core.Error as error:
            if cache.folder != "auto":
                raise
            self.store, self.why, self.refused = None, str(error), True  # nobody asked for that place
            return
        self.measuring = cache.folder == "auto" and not self.store.stats()["records"]

    def call(self, name, args, kwargs):
        found = self.store.get(name)
        self.counts["cache_misses" if found is None else "cache_hits"] += 1
        if found is not None:
            return unpack(*found)
        start = time.perf_counter_ns()
        result = self.function(*args, **kwargs)
        spent = time.perf_counter_ns() - start
        try:
            self.store.put(name, *pack(result))
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        if self.measuring:
            self._measure(name, spent)
        return result

    def _measure(self, name, spent):
        self.store.get(name)  # for the time that it takes
        self.calls, self.call_ns = self.calls + 1, self.call_ns + spent
        if self.calls < TRIALS:
            return
        self.measuring = False
        stats = self.store.stats()
        reads = max(stats["hits"], 1)
        read_ns = (stats["unpack_ns"] + stats["read_bytes"] * 1e9 / DISK_BYTES_PER_S) / reads
        pays = stats["hits"] > 0 and self.call_ns / self.calls >= WORTH * read_ns
        self.refused = not pays
        self.why = (f"{'pays' if pays else 'does not pay'}: a call takes {self.call_ns / self.calls / 1e3:.0f} us, "
                    f"reading its result {read_ns / 1e3:.0f} us")  # fmt: skip
        if self.refused:
            self.store.discard("does not pay")

    def close(self):
        if self.store:
            self.store.close()
        self.store, self.refused = None, True
