"""PrefetchWindow: how many batches of a process pool are in flight.  This is the one place where that is decided.
Poster: keeps the window full.

A batch is in flight from its post until its result is opened.  Four limits form the window:

    batches   how many batches are in flight.  The user's number, else the controller's, else the default of the front
              end; without the user's number, at least as many as keep all workers busy.
    started   of the batches in flight, how many may have samples that workers have begun.  It bounds memory: batches
              are posted early, so that slow samples are known, but large ones are begun one after the other.
    bytes     memory of the batches in flight: the loader's memory_limit, or the controller's prefetch_bytes.
    reorder   out of order, by how many batches a sample may be late.

The window decides `batches` itself (room()).  It sets the other three in the shmpool, whose workers obey them when they
claim samples (src/shmpool/choose.c).

A front end gives hints at the beginning of a pass (begin_pass, expect_samples); its Poster then posts as many batches
as room() says.  The pool reports posts and results (posted, opened, batch_made, cleared).  Every pool has a window,
`pool.window`, and every pass a Poster.
"""

import math
import os
import time
from dataclasses import dataclass

from drapps import _core

SMALL_BYTES = _core.PREFETCH_CHEAP_BYTES  # batches in flight that take no more memory than this are not limited further

# batches: the least number, while the batches are small.
# For each worker, where samples of several batches mix: evens out that some take longer.
SAMPLES_EACH = _core.PREFETCH_SAMPLES_PER_WORKER
LONGEST_TIMES = 2  # samples that a worker makes in the time of the longest one are in flight this many times
POST_TOGETHER = 1 / 4  # of that number is posted at once: each post runs code that is not in the caches, and may wake a
# worker, while the consumer waits

# started, in order: a further batch is allowed where the consumer waited for most of CHECK_EVERY batches although the
# workers were idle for IDLE_PART of their time and IDLE_NS.  Less idle time is not worth the memory of a batch.
CHECK_EVERY = 8
IDLE_PART = 0.35
IDLE_NS = 10_000_000

# reorder.
REORDER_LEAST, REORDER_EACH = 32, 4  # batches at least, and for each worker or CPU


def reorder_window(workers, max_workers):
    """Return by how many batches a sample may be late out of order."""
    cpus = len(os.sched_getaffinity(0))  # the controller may raise the number of workers to that
    return max(REORDER_LEAST, REORDER_EACH * min(max(workers, cpus), max_workers))


def bytes_of(result):
    """Return the memory that a result of the shmpool takes."""
    return (result.head_bytes or 0) + (0 if result.slab is None else result.slab.nbytes)


@dataclass
class Hints:
    """What a front end says before a pass (PrefetchWindow.begin_pass)."""

    default: int = 1
    override: int = 0
    per_worker: int = 0
    exact: bool = False
    batch_samples: int = 1
    by_worker: bool = True


class PrefetchWindow:
    """The window of a process pool.

    All calls of a pass come from one thread at a time.  It holds the shmpool until close(), never the pool.
    workers: that the pool has now.  controller: the pool's, once it has one.
    """

    def __init__(self, shmpool, workers, *, in_order, reorder, memory_limit=0):
        self._shmpool, self._in_order = shmpool, in_order
        self.workers = workers
        self.in_flight = 0
        self.controller = None
        self._hints, self._small = Hints(), SmallBatches(reorder)
        self.started = 0  # out of order: batches that may be begun; 0: all
        self._start_limit = None
        shmpool.set_window(0, memory_limit)

    # --- hints of the front end ---

    def begin_pass(self, default, *, limit_started=False, **hints):
        """Set what is known before a pass.

        default: batches in flight until a controller decides.  override: the user's number of batches, or 0;
        per_worker: the user's number for each worker, or 0.  exact: an override below one batch for each worker is
        followed, too.  batch_samples: in a batch.  by_worker: each batch is made by a single worker, so that there has
        to be one for each; else the samples of a batch are spread over the workers.  limit_started: in order, begin
        only as many batches as are needed (the first pass of a pool decides).
        """
        self._hints = Hints(default, **hints)
        self._small.begin_pass()
        if limit_started and self._in_order and self._start_limit is None:
            least = self.workers if self._hints.by_worker else self._one_sample_each()
            self._start_limit = StartLimit(self._shmpool, self.workers, most=default, least=least)

    def expect_samples(self, prefetch_factor, batch_size, *, mixes, longest):
        """Keep more batches in flight while they are small: prefetch_factor for each worker, and what evens out costs.

        batch_size: samples of a batch, or None where it varies.  mixes: samples of several batches fill a batch
        together.  longest: the cost of the longest sample, in mean costs; 0: not known.
        """
        self._small.expect_samples(prefetch_factor, batch_size, mixes, longest)
        if not self._in_order:  # out of order, what is begun fills the batches that wait for slow samples
            self._set_started(self.batches if mixes and longest else 0)
        if self.started:  # the pass begins with the shortest of many; the size of a batch is not known yet
            self._small.post_all(self.workers)

    def override(self, batches):
        """Use the user's number of batches from now on."""
        self._hints.override, self._hints.per_worker = batches, 0

    def resize(self, workers):
        """The user changes the number of workers, and the default with it."""
        self._hints.default = max(1, self._hints.default // self.workers) * workers
        self.set_workers(workers)

    def set_workers(self, workers):
        """The pool has another number of workers now."""
        self.workers = workers
        if self._start_limit is not None:
            self._start_limit.workers = workers

    # --- questions of the front end ---

    @property
    def default(self):
        """Batches in flight, without the user's number and without a controller."""
        return self._hints.default

    @property
    def batches(self):
        """How many batches should be in flight."""
        hints = self._hints
        if hints.per_worker:
            return hints.per_worker * self.workers
        one_each = self.workers if hints.by_worker else 1
        if hints.override:
            return hints.override if hints.exact else max(hints.override, one_each)
        least = max(self._one_sample_each(), self._small.at_least)
        if self.controller is None:
            return max(hints.default, least)
        return max(int(self.controller.get("prefetch")), one_each, least)

    def room(self):
        """Return how many batches to post now; 0 while it is better to wait until several can be posted together."""
        batches = self.batches
        room = batches - self.in_flight
        return room if room >= (self._small.together if batches == self._small.at_least else 1) else 0

    def _one_sample_each(self):
        """Batches that have a sample for each worker."""
        return -(-self.workers // self._hints.batch_samples)

    # --- reports of the pool ---

    def posted(self):
        """Count a batch that was posted."""
        self.in_flight += 1

    def opened(self, result, waited):
        """Count a result that was taken.  waited: the consumer waited for it."""
        self.in_flight -= 1
        if self._start_limit is not None:
            self._start_limit.taken(bytes_of(result), waited)

    def batch_made(self, nbytes, samples):
        """Note the size of a batch, and keep as many in flight as are small together."""
        if self._small.batch_made(nbytes, samples, self.workers) and self._small.mixes:
            batches = self.batches
            self._set_started(batches if self.in_flight > batches else 0)

    @property
    def largest_bytes(self):
        """Of a batch of this pass."""
        return self._small.largest_bytes

    def cleared(self):
        """Nothing is in flight any more."""
        self.in_flight = 0

    def close(self):
        """The pool ends.  in_flight stays as it is."""
        self._shmpool = self._start_limit = None

    def _set_started(self, batches):
        """Limit the batches that may be begun; 0: no limit."""
        if batches != self.started and self._shmpool is not None:
            self.started = batches
            self._shmpool.set_window(batches)


class SmallBatches:
    """How many batches are in flight at least while they are small, so that samples that take longer are evened out."""

    def __init__(self, reorder):
        self._reorder = reorder
        self._factor = 0  # prefetch_factor; 0: nothing is expected
        self._batch_size, self._samples_each = None, 0  # samples of a batch, and in flight for each worker
        self.mixes = False
        self.at_least = 1  # batches in flight
        self.together = 1  # batches that are posted at once
        self.largest_bytes = 0  # of a batch of this pass

    def begin_pass(self):
        """Nothing is expected, until expect_samples()."""
        self.at_least, self._factor = 1, 0

    def expect_samples(self, prefetch_factor, batch_size, mixes, longest):
        """As of PrefetchWindow."""
        self._factor, self._batch_size, self.mixes = prefetch_factor, batch_size, mixes
        self._samples_each = max(SAMPLES_EACH if mixes else 0, LONGEST_TIMES * longest)
        self.largest_bytes = 0

    def post_all(self, workers):
        """Have as many batches in flight as even out what samples cost, before their size is known."""
        self.at_least = self._evening_batches(self._batch_size, workers)

    def batch_made(self, nbytes, samples, workers):
        """Note the size of a batch; return False where nothing is expected."""
        if not self._factor:
            return False
        self.largest_bytes = max(self.largest_bytes, nbytes, 1)
        usual, fitting = self._factor * workers, SMALL_BYTES // self.largest_bytes
        wanted = max(usual, self._evening_batches(self._batch_size or samples, workers))
        self.at_least = min(wanted, fitting) if fitting >= usual else 1
        if self.mixes:
            self.together = max(1, int(self.at_least * POST_TOGETHER))
        return True

    def _evening_batches(self, batch_samples, workers):
        """Batches in flight that even out what samples cost."""
        return min(math.ceil(self._samples_each * workers / batch_samples), self._reorder)


class StartLimit:
    """How many batches may be begun in order, so that large ones take little memory.

    Small batches are begun as they are posted.  Of large ones, and until their size is known, `least` are begun at a
    time, and one more wherever idle workers and a waiting consumer show that it helps.
    """

    def __init__(self, shmpool, workers, *, most, least):
        self._shmpool, self._most = shmpool, most
        self._batches = min(least, most)
        self._since, self._busy_ns = time.monotonic_ns(), 0
        self._taken = self._idle = 0
        self.workers = workers
        self._set()

    def _set(self):
        self._shmpool.set_window(0 if self._batches >= self._most else self._batches)

    def taken(self, nbytes, waited):
        """A batch of that size was taken.  waited: the consumer waited for it."""
        if self._batches >= self._most:
            return
        if nbytes * self._most <= SMALL_BYTES:
            self._batches = self._most
            self._set()
            return
        idle = self._were_idle()
        self._taken, self._idle = self._taken + 1, self._idle + (idle and waited)
        if self._taken == CHECK_EVERY:
            if self._idle > CHECK_EVERY // 2:
                self._batches += 1
                self._set()
            self._taken = self._idle = 0

    def _were_idle(self):
        """Whether the workers were idle since the batch before.  They are at the start of a pool and of a pass."""
        now = time.monotonic_ns()
        busy_ns = sum(self._shmpool.worker_at(worker).busy_ns for worker in range(self.workers))
        time_ns = max(1, (now - self._since) * self.workers)
        idle_ns = time_ns - (busy_ns - self._busy_ns)
        self._since, self._busy_ns = now, busy_ns
        return idle_ns > IDLE_PART * time_ns and idle_ns > IDLE_NS * self.workers


class Poster:
    """Posts the batches of one pass in order, as many as the prefetch window has room for.

    batches: an iterator of what is posted.  post: a function that posts one; it returns False where that is not
    possible now, and gets the same batch again later.  One thread at a time may call fill().
    """

    def __init__(self, pool, batches, post):
        self._pool, self._batches, self._post = pool, batches, post
        self._left = None  # a batch that could not be posted yet
        self.exhausted = False  # there are no more batches

    @property
    def is_over(self):
        """Whether every batch of the pass was posted and its result opened."""
        return self.exhausted and self._pool.window.in_flight == 0

    def fill(self, seconds=math.inf):
        """Post until the window is full; return False where it took longer than that."""
        end = time.monotonic() + seconds
        for _ in range(self._pool.window.room()):
            if self.exhausted:
                break
            try:
                batch = next(self._batches) if self._left is None else self._left
            except StopIteration:
                self.exhausted = True
                self._pool.post_end()
                break
            self._left = None if self._post(batch) else batch
            if self._left is not None:
                break
            if time.monotonic() > end:
                return False
        return True
