"""Pace: how long the consumers of a pass waited for batches, and did something else between two calls.

Both are times of the clock on the wall, whoever and however many the consumers are: together they are the time from the
first call of the pass to its end, as those of a native loader (src/exec/flow.c).
"""

import threading
import time

from drapps import _core


class Pace:
    """That of one pass.  sums: a dict in which wait_ns and step_ns grow."""

    def __init__(self, sums):
        self._sums = sums
        self._waiting = set()  # threads
        self._until = None  # until then it is counted; None: no call has come, or the pass is over
        self._lock = threading.RLock()

    def comes(self):
        """A consumer begins to wait."""
        _core.defer_sigint(self._comes)

    def _comes(self):
        with self._lock:
            now = self._count()
            self._waiting.add(threading.get_ident())
            self._until = now

    def leaves(self, over=False):
        """It has waited; over: the pass came to its end."""
        _core.defer_sigint(self._leaves, over)

    def _leaves(self, over):
        with self._lock:
            self._count()
            self._waiting.discard(threading.get_ident())
            if over and not self._waiting:
                self._until = None

    def end(self):
        """The pass is over, or given up: what follows is none of it."""
        _core.defer_sigint(self._end)

    def _end(self):
        with self._lock:
            self._count()
            self._until = None

    def count(self):
        """What goes on right now is counted in."""
        _core.defer_sigint(self._count)

    def _count(self):
        with self._lock:
            now = time.monotonic_ns()
            if self._until is not None:
                self._sums["wait_ns" if self._waiting else "step_ns"] += now - self._until
                self._until = now
            return now
