"""drapps.deterministic: keeps results of Python functions on disk for later epochs and runs.

    class Scans(Dataset):
        @drapps.deterministic
        def prepare(self, i):
            return normalize(resample(load(self.paths[i])))

        def __getitem__(self, i):
            return random_crop(self.prepare(i))

Without an active cache in the process, the function runs as usual.  drapps.DataLoader(cache=...) and
Pipeline.loader(cache=...) activate a cache in the processes that make the samples.  docs/cache.md says what the key of
a result consists of.
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

TRIALS = 16  # calls that are measured before "auto" mode decides
WORTH = 2  # reading a result must be this many times faster than making it
DISK_BYTES_PER_S = 500e6  # bytes/s at which data sets larger than memory are read
FORMAT = 1

_active = None  # in this process,
_here = threading.local()  # or, as .cache, in this thread alone


def deterministic(function=None, *, key=None):
    """Mark a function or method whose result depends only on its arguments, so that the result may be cached.

    key: a function of the same arguments that returns what decides the result (texts, numbers, tuples of them).  Needed
        for objects that their attributes do not identify, or whose attributes do not all matter.  The function's name
        and code are always part of the key.

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


def activate(folder, limit=0, key="", adaptive=True, memory=0):
    """Makes a cache active in this process; returns it.  The child of a fork activates its own.

    folder: where, or "auto": the user's cache folder, and only functions for which that was measured to pay.
    limit: bytes on disk of all that is kept in the folder; 0: half of what is free there.
    key: a text that belongs to the key of every result.
    adaptive: compressed where that is measured to pay; False: always.
    memory: bytes for each function in memory, shared by the processes of the machine; folder None: there alone.
    """
    global _active
    _active = Cache(folder, limit, key, adaptive, memory=memory)
    return _active


def deactivate():
    """Deactivate the cache of this process."""
    global _active
    _active = None


@contextlib.contextmanager
def using(cache):
    """Activate a cache (or none) in this thread for the length of a with block."""
    before = vars(_here).copy()
    _here.cache = cache
    try:
        yield cache
    finally:
        vars(_here).clear()
        vars(_here).update(before)


def folder_text(folder):
    """Where a cache is, in words."""
    if folder is None:
        return "memory"
    folder = os.fspath(folder)
    return "the user's cache folder, where that is measured to save time" if folder == "auto" else folder


def is_marked(function):
    """Return whether a function is marked as deterministic."""
    return hasattr(function, "drapps_function")


class Cache:
    """The stores of the marked functions, below one folder.  counts: the dict that counts
    cache_hits and cache_misses."""

    def __init__(self, folder, limit=0, key="", adaptive=True, counts=None, memory=0):
        self.folder = None if folder is None else os.fspath(folder)
        self.limit, self.key, self.adaptive, self.memory = limit, key, adaptive, memory
        self.counts = Counter() if counts is None else counts
        self.pid = os.getpid()
        self.stores = {}
        self.selves = weakref.WeakKeyDictionary()  # by id: the digest of an object, for its lifetime

    def call(self, wrapper, args, kwargs):
        """Return the function's result: from the store, or made now and stored."""
        function, kept = wrapper.drapps_function, self.stores.get(wrapper)
        if kept is None:
            name = f"{function.__module__}.{function.__qualname__}"
            kept = self.stores[wrapper] = Kept(self, name, code_digest(function).hex())
        if kept.refused:
            return function(*args, **kwargs)
        return kept.call(self._name(wrapper, args, kwargs), functools.partial(function, *args, **kwargs))

    def kept(self, name, code):
        """The Kept of something else than a function; code: a text that tells what makes its results."""
        if (name, code) not in self.stores:
            self.stores[name, code] = Kept(self, name, code)
        return self.stores[name, code]

    def _name(self, wrapper, args, kwargs):
        """Return the key of a result."""
        if wrapper.drapps_key is not None:
            return digest(wrapper.drapps_key(*args, **kwargs))
        try:
            return b"".join(map(self._digest, args)) + (digest(kwargs) if kwargs else b"")
        except Unnamed as error:
            name = wrapper.drapps_function.__qualname__
            raise _core.ArgumentError(f"{name}: {error}; name what decides the result by "
                                      "@drapps.deterministic(key=...)") from None  # fmt: skip

    def _digest(self, value):
        """Return a digest; that of an object (mostly the data set) is computed once."""
        if not hasattr(value, "__dict__") or type(value).__hash__ is not object.__hash__:
            return digest(value)
        known = self.selves.get(value)
        if known is None:
            known = self.selves[value] = digest(value)
        return known

    def stats(self):
        """Return the counters of each function's store, by the function's name."""
        return {kept.name: {**kept.store.stats(), "why": kept.why} for kept in self.stores.values() if kept.store}

    def close(self):
        for kept in self.stores.values():
            kept.close()
        self.stores = {}


class Kept:
    """One function and its store.  code: a digest of what makes its results."""

    def __init__(self, cache, name, code):
        self.name = name
        self.why, self.refused = "asked for", False
        self.counts, self.in_memory = cache.counts, bool(cache.memory)
        self.calls = self.call_ns = 0  # of the trial
        identity = {"format": FORMAT, "python": self.name, "code": code, "key": cache.key}
        try:
            name = json.dumps(identity, sort_keys=True)
            self.store = _core.open_store(cache.folder, name, cache.limit, cache.adaptive, cache.memory)
        except _core.Error as error:
            if cache.folder != "auto":
                raise
            self.store, self.why, self.refused = None, str(error), True  # nobody asked for that place
            return
        self.measuring = cache.folder == "auto" and not self.store.stats()["records"]

    def call(self, name, make):
        """The result of that name: found, or made by make() and stored."""
        found = self.store.get(name)
        self.counts["cache_misses" if found is None else "cache_hits"] += 1
        if found is not None:
            return unpack(*found)
        start = time.perf_counter_ns()
        result = make()
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
        self.refused = not pays and not self.in_memory
        self.why = (f"{'pays' if pays else 'does not pay'}: a call takes {self.call_ns / self.calls / 1e3:.0f} us, "
                    f"reading its result {read_ns / 1e3:.0f} us")  # fmt: skip
        if not pays:
            self.store.discard("does not pay")

    def close(self):
        if self.store:
            self.store.close()
        self.store, self.refused = None, True
