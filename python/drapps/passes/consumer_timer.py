"""ConsumerTimer: how long the consumers of a pass waited for batches, and how long they used them.

The two counters mean the same in every loader, and this is their definition:

- wait_ns: time in which at least one consumer was inside next().
- step_ns: time between two calls of next(), in which no consumer was inside: the training step.

Both are wall-clock time, however many consumers there are: together they are the time from the first call of next() of
a pass to the end of the pass.  Time after the end, or after the pass was cancelled, counts as neither.

Each executor measures them once, where the wait happens: native loaders in C (src/exec/flow.c), worker processes for
their controller in C (src/shmpool/shmpool_flow.c).  This timer serves the loaders of Python, whose passes may run in
the caller, where no C code sees the consumer.
"""

import threading
import time

from drapps import _core


class ConsumerTimer:
    """The timer of one pass.  sums: a dict in which wait_ns and step_ns grow."""

    def __init__(self, sums):
        self._sums = sums
        self._waiting = set()  # threads
        self._until = None  # counted up to here; None: no call has come, or the pass is over
        self._lock = threading.RLock()

    def begin_wait(self):
        """The calling thread begins to wait."""
        _core.defer_sigint(self._begin_wait)

    def _begin_wait(self):
        with self._lock:
            now = self._count()
            self._waiting.add(threading.get_ident())
            self._until = now

    def end_wait(self, over=False):
        """The calling thread has waited; over: the pass came to its end."""
        _core.defer_sigint(self._end_wait, over)

    def _end_wait(self, over):
        with self._lock:
            self._count()
            self._waiting.discard(threading.get_ident())
            if over and not self._waiting:
                self._until = None

    def stop(self):
        """The pass is over, or cancelled: later time is no part of it."""
        _core.defer_sigint(self._stop)

    def _stop(self):
        with self._lock:
            self._count()
            self._until = None

    def count(self):
        """Adds the time up to now to the sums."""
        _core.defer_sigint(self._count)

    def _count(self):
        with self._lock:
            now = time.monotonic_ns()
            if self._until is not None:
                self._sums["wait_ns" if self._waiting else "step_ns"] += now - self._until
                self._until = now
            return now
