"""What makes the samples of a DataLoader, over all its passes: native loaders and process pools, which come and go.

Counters sums what they counted: their counters are read a last time when they end.  EngineCache keeps a native loader
between two passes.
"""

import os
import threading
import weakref
from collections import Counter
from contextlib import suppress
from functools import partial

from drapps import _core
from drapps.stat_keys import CACHE_SUMS, ENGINE_SUMS, RANGE_SUMS, REMOTE_SUMS

# Keys of their stats() that are added up.
COUNTS = ("deaths", "slow_samples")
SUMS = (*COUNTS, *ENGINE_SUMS, *RANGE_SUMS, *CACHE_SUMS, *REMOTE_SUMS)
# A DataLoader counts these itself: the engine's are those of its latest pass.
OWN_COUNTS = ("samples", "delivered_samples", "batches", "epochs", "epoch", "bad_samples", "wait_ns", "step_ns")


class Counters:
    """The counters of one DataLoader.

    ended: the sums of makers that ended, and of what is made in the caller.
    native, plan: the latest native loader, perhaps closed, and what it was opened for.
    """

    def __init__(self, counted=None):
        self.ended = Counter(counted)
        self.native = self.plan = None
        self._running = weakref.WeakSet()
        self._lock = threading.RLock()

    def watch(self, maker):
        """Adds a maker of samples: it has stats(), and calls at_end with itself and its last stats()."""
        with self._lock:
            self._running.add(maker)
        maker.at_end = partial(_ended, weakref.ref(self))

    def watch_native(self, native, plan):
        """Adds a native loader."""
        self.watch(native)
        self.native, self.plan = native, plan

    def end(self, maker, stats):
        """Adds the last stats of a maker that ended."""
        with self._lock:
            self._running.discard(maker)
            add(self.ended, stats)

    def _sums(self):
        with self._lock:
            found = Counter(self.ended)
            for maker in list(self._running):
                with suppress(_core.Error):  # in a forked child they are the parent's
                    add(found, maker.stats())
            return found

    def stats(self):
        """The counters, as far as they are known: worker processes do not count all that the engine does."""
        sums = self._sums()
        found = {name: value for name, value in self._of_native().items() if name not in OWN_COUNTS}
        return found | {name: sums[name] for name in SUMS if name in sums or name in COUNTS}

    def _of_native(self):
        try:
            return self.native.last_stats() if self.native is not None else {}
        except _core.Error:  # the parent's
            return {}

    def __reduce__(self):
        """A copy begins with what was counted; the makers stay with the original."""
        return Counters, (self._sums(),)


def _ended(counters, maker, stats):
    if counters() is not None:
        counters().end(maker, stats)


def add(sums, stats):
    """Adds the stats of one maker to the sums."""
    for name in SUMS:
        if name in stats:
            sums[name] += stats[name]


class EngineCache:
    """Keeps a native loader open between two passes, so that the next one begins at once, and the cache of marked
    functions that run in the caller, because memory is given up when its last user closes it."""

    def __init__(self):
        self._key = self._native = self._functions = None
        self._lock = threading.Lock()

    def take(self, key):
        """The loader that was opened with this key, or None.  One with another key is closed."""
        with self._lock:
            found, self._native = self._native, None
        if found is not None and self._key != key:
            found.close()
            return None
        return found

    def put(self, key, native):
        """Keeps the loader of a pass that is over.  If several passes ran concurrently, only one is kept."""
        with self._lock:
            if self._native is None:
                self._key, self._native, native = key, native, None
        if native is not None:
            native.close()

    def functions(self, make):
        """The cache of marked functions of this process; make() makes it."""
        with self._lock:
            if self._functions is None or self._functions.pid != os.getpid():
                self._functions = make()
            return self._functions

    def close_native(self):
        """Closes the loader that is kept."""
        with self._lock:
            native, self._native = self._native, None
        if native is not None:
            native.close()

    def close(self):
        """Closes all that is kept."""
        self.close_native()
        with self._lock:
            functions, self._functions = self._functions, None
        if functions is not None and functions.pid == os.getpid():
            functions.close()

    def __reduce__(self):
        """A copy of a DataLoader has native loaders of its own."""
        return EngineCache, ()
