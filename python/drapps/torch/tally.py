"""Tally: counters of whoever made the samples of a DataLoader, over all its passes.

Native loaders and worker processes come and go: what they have counted is read once more when they end.
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
# What the engine counts by passes, where a DataLoader counts by itself.
NOT_THE_ENGINES = ("samples", "delivered_samples", "batches", "epochs", "epoch", "bad_samples", "wait_ns", "step_ns")


class Tally:
    """Of one DataLoader.

    ended: the sums of those that are gone, and what is made in the caller.
    native, plan: the latest native loader, perhaps closed, and what it was opened for.
    """

    def __init__(self, counted=None):
        self.ended = Counter(counted)
        self.native = self.plan = None
        self._at_work = weakref.WeakSet()
        self._lock = threading.RLock()

    def watch(self, maker):
        """Something makes samples now: has stats(), and calls at_end with itself and its last stats()."""
        with self._lock:
            self._at_work.add(maker)
        maker.at_end = partial(_tell, weakref.ref(self))

    def watch_native(self, native, plan):
        """The same, of a native loader."""
        self.watch(native)
        self.native, self.plan = native, plan

    def end(self, maker, stats):
        """It works no more."""
        with self._lock:
            self._at_work.discard(maker)
            add(self.ended, stats)

    def _sums(self):
        with self._lock:
            found = Counter(self.ended)
            for maker in list(self._at_work):
                with suppress(_core.Error):  # in a forked child they are the parent's
                    add(found, maker.stats())
            return found

    def stats(self):
        """The counters, as far as they are known: what the engine counts, worker processes do not."""
        sums = self._sums()
        found = {name: value for name, value in self._of_native().items() if name not in NOT_THE_ENGINES}
        return found | {name: sums[name] for name in SUMS if name in sums or name in COUNTS}

    def _of_native(self):
        try:
            return self.native.last_stats() if self.native is not None else {}
        except _core.Error:  # the parent's
            return {}

    def __reduce__(self):
        """A copy begins with what was counted; those that work are the original's."""
        return Tally, (self._sums(),)


def _tell(tally, maker, stats):
    if tally() is not None:
        tally().end(maker, stats)


def add(sums, stats):
    """Adds what one has counted."""
    for name in SUMS:
        if name in stats:
            sums[name] += stats[name]
