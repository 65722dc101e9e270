"""Counters: what the native loaders and process pools of a DataLoader counted, over all its passes.

Native loaders and pools come and go: their counters are read a last time when they end.
"""

import threading
import weakref
from collections import Counter
from contextlib import suppress
from functools import partial

from drapps import _core
from drapps.stat_keys import CACHE_SUMS, ENGINE_SUMS

# Keys of their stats() that are added up.
COUNTS = ("deaths", "slow_samples")
SUMS = (*COUNTS, *ENGINE_SUMS, *CACHE_SUMS)
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
