"""Window: how many batches are begun and not yet taken, so that large ones take little memory.

Batches that are small together are begun as they are posted.  Of large ones, and until their size is known, only as
many are begun at a time as give every worker a sample, mostly a single one; another is allowed where the consumer waits
for most batches though workers are idle for a good part of their time, because it would help there.  Idle times of some
milliseconds a batch, as the hand-over takes them, are not worth the memory of a batch.
"""

import time

SMALL = 64 << 20  # bytes that all posted batches may take without further thought
IDLE = 0.35  # part of the workers' time,
IDLE_NS = 10_000_000  # and how long
LOOK = 8  # batches between two looks


def bytes_of(result):
    """Memory of a batch, as the shmpool gives it."""
    return (result.head_bytes or 0) + (0 if result.slab is None else result.slab.nbytes)


class Window:
    """The window of a shmpool.  most: batches that are posted at a time; least: as many are always allowed."""

    def __init__(self, shmpool, workers, *, most, least):
        self._shmpool, self._most = shmpool, most
        self._batches = min(least, most)
        self._since, self._busy_ns = time.monotonic_ns(), 0
        self._taken = self._idle = 0
        self.workers = workers
        self._set()

    def _set(self):
        whole = self._batches >= self._most
        self._shmpool.set_window(0 if whole else self._batches)

    def taken(self, result, waited):
        """A result was taken; waited: the consumer had to wait for it."""
        if self._batches >= self._most:
            return
        if bytes_of(result) * self._most <= SMALL:
            self._batches = self._most
            self._set()
            return
        idle = self._were_idle()
        self._taken, self._idle = self._taken + 1, self._idle + (idle and waited)
        if self._taken == LOOK:
            if self._idle > LOOK // 2:
                self._batches += 1
                self._set()
            self._taken = self._idle = 0

    def _were_idle(self):
        """Whether the workers were, since the batch before: the start of workers and of a pass is one such time."""
        now, busy_ns = time.monotonic_ns(), sum(self._shmpool.worker_at(worker)[-1] for worker in range(self.workers))
        time_ns = max(1, (now - self._since) * self.workers)
        idle_ns = time_ns - (busy_ns - self._busy_ns)
        self._since, self._busy_ns = now, busy_ns
        return idle_ns > IDLE * time_ns and idle_ns > IDLE_NS * self.workers
