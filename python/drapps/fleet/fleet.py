"""Fleet: worker processes that make the batches of a Python data set, seen from the process that trains.

The trainer posts batches of indices and takes results.  Who makes which sample, the order of results and the
replacement of dead workers are the business of the crew (drapps/crew.h), the workers and the zygote.
"""

import atexit
import functools
import os
import threading
import time
import warnings
import weakref
from collections import Counter, namedtuple
from multiprocessing import util

from torch.utils.data import default_collate

from drapps import _core
from drapps.fleet import request as requests
from drapps.fleet.book import LayoutBook
from drapps.fleet.failure import unpack_failure, wrapped
from drapps.fleet.keeper import Keeper, ZygoteGone, context_of
from drapps.fleet.layout import Beside
from drapps.fleet.pack import unpack
from drapps.fleet.setup import Setup
from drapps.fleet.stacks import new_stacks, stack_of
from drapps.fleet.zygote import describe

READY, AGAIN, END = range(3)
GOOD, BAD, DIED, STUCK = range(4)  # states of a sample
WHOLE_NS = (1 << 32) - 1
CLAIM_NS = 1_000_000
CHEAP_NS = 1_000_000  # samples below that are not spread over workers when each would have to be packed
TOGETHER_NS = 1_000_000_000
LOOK_S = 0.1
MAX_WORKERS = 256
MAX_BATCHES = 1024
MAX_ZYGOTES = 16  # that may be killed

Sample = namedtuple("Sample", "tag slot ns state error")  # error: an ExceptionWrapper, or None
Result = namedtuple("Result", "tag value samples worker number")  # value: the batch, or an ExceptionWrapper
Stuck = namedtuple("Stuck", "worker pid tag slot index seconds stack")

_open_fleets = weakref.WeakSet()


class NothingPosted(LookupError):
    """next() was called, and every batch that was posted is taken."""


class Fleet:
    """Worker processes and what they are at.

    kind: "map" or "iterable".  bad: "raise": a sample's exception is the result of its batch; "report": it is in the
    result's samples, and the batch is made of the others (None when there are none).
    """

    def __init__(self, dataset, collate_fn, *, workers, kind="map", auto_collation=True, drop_last=False, base_seed=0,
                 shared_seed=None, worker_init_fn=None, context=None, in_order=True, lanes=True, memory_limit=0,
                 max_attempts=3, seed_samples=True, bad="raise", max_batches=MAX_BATCHES):  # fmt: skip
        check(workers=(workers, range(1, MAX_WORKERS + 1)), kind=(kind, ("map", "iterable")),
              bad=(bad, ("raise", "report")))  # fmt: skip
        self._pid = os.getpid()
        self._context = context_of(context)
        self._crew = _core.open_crew(max_workers=MAX_WORKERS, max_batches=max_batches, in_order=in_order, lanes=lanes,
                                     max_attempts=max_attempts)  # fmt: skip
        if memory_limit:
            self._crew.set_window(0, memory_limit)
        self._fds = [os.memfd_create("drapps-layouts"), new_stacks()]
        self._book = LayoutBook(self._fds[0])
        self._setup = Setup(dataset, collate_fn, worker_init_fn, kind, auto_collation, drop_last, base_seed,
                            shared_seed, workers, in_order, seed_samples, bad == "report", self._crew, *self._fds)
        self._whole = not auto_collation or bool(getattr(dataset, "__getitems__", None))
        self._workers = workers
        self._lock = threading.Lock()  # of what is heard from the zygote
        self._pending = {}  # tag: [indices, slots that are not delivered yet]
        self._dead_pids, self._zygotes, self._failure = [], 0, None
        self._mean_ns = self._slots = 0
        self._epoch_number = -1
        self.begin_epoch(base_seed, shared_seed)
        self._looked = time.monotonic()
        self._keeper = None
        try:
            self._keeper = Keeper(self._setup, self._context)
        except BaseException:
            self.close()
            raise
        _open_fleets.add(self)
        _close_at_the_end()

    # --- posting ---

    def begin_epoch(self, base_seed, shared_seed=None):
        """Other seeds from now on, and new iterators.  What was posted before has to be taken or cleared."""
        self._epoch_number += 1
        self._epoch = requests.Epoch(self._epoch_number, base_seed, shared_seed)
        self._items = [0] * self._workers  # asked of each iterator

    def post(self, tag, index, costs=None, worker=-1, keep=False, keys=None):
        """Asks for a batch.  False: too many are under way.

        index: the indices of a batch, or, without auto_collation, one index.  Of an iterable data set: the number of
        items (None without auto_collation); worker: who has the iterator.  costs: predicted nanoseconds of each slot.
        keep: its samples stay together out of order too.  keys: the tag and slot that each sample's random numbers
        follow from, where these are not its own.
        """
        if self._setup.kind == "iterable":
            return self._post_items(tag, index, worker)
        if self._whole or not (index := list(index)):
            request = self._epoch.of_whole(index)
            return self._post(tag, index, 1, request, None, worker, min_claim_ns=WHOLE_NS)
        self._slots = self._slots or len(index)
        together = self._setup.collate_fn is not default_collate and 0 < self._mean_ns < CHEAP_NS
        return self._post(tag, index, len(index), self._epoch.of_slots(index, keys), costs, worker,
                          min_claim_ns=TOGETHER_NS if together else CLAIM_NS,
                          keep=keep or together or len(index) != self._slots)  # fmt: skip

    def _post_items(self, tag, n, worker):
        if not 0 <= worker < self._workers:
            raise ValueError(f"worker is {worker}, the iterators are those of 0 to {self._workers - 1}")
        request = self._epoch.of_items(n, self._items[worker])
        posted = self._post(tag, f"items of worker {worker}", 1, request, None, worker, min_claim_ns=WHOLE_NS)
        if posted:
            self._items[worker] += 1 if n is None else n
        return posted

    def skip_items(self, worker, n):
        """A worker's iterator begins after its first n items; before anything is posted for it."""
        self._items[worker] = n

    def _post(self, tag, index, n_slots, request, costs, worker, **options):
        self._pending[tag] = [index, n_slots]
        if self._crew.post(tag, n_slots, request, costs, worker, **options):
            return True
        del self._pending[tag]
        return False

    def post_end(self):
        """Nothing more is posted in this epoch."""
        self._crew.post_end()

    # --- taking ---

    def next(self, timeout=None):
        """The next Result; None after timeout seconds.  Raises NothingPosted."""
        if self._keeper is None:
            raise RuntimeError("the fleet is closed")
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            now = time.monotonic()
            if now - self._looked >= LOOK_S:
                self._looked = now
                self._look_after()
            left = LOOK_S if end is None else min(LOOK_S, max(0.0, end - now))
            status, result = self._crew.next(int(left * 1000))
            if status == READY:
                return self._result(result)
            if status == END:
                raise NothingPosted("every batch that was posted is taken")
            if end is not None and time.monotonic() >= end:
                return None

    def _result(self, raw):
        errors = {i: self._error(sample) for i, sample in enumerate(raw.samples) if sample[3] != GOOD}
        samples = [Sample(tag, slot, ns, state, None) for tag, slot, _, state, _, ns, _ in raw.samples]
        for i, (_, error) in errors.items():
            samples[i] = samples[i]._replace(error=error)
        self._delivered(samples)
        return Result(raw.tag, self._value(raw, errors), samples, raw.worker, raw.number)

    def _delivered(self, samples):
        for tag, n in Counter(sample[0] for sample in samples).items():
            pending = self._pending.get(tag)
            if pending is not None:
                pending[1] -= n
                if pending[1] <= 0:
                    del self._pending[tag]
        self._mean_ns += (samples[0].ns - self._mean_ns) / 8

    def _value(self, raw, errors):
        if raw.failed and raw.head is not None:
            return unpack_failure(raw.head)[1]
        stop = [error for fatal, error in errors.values() if fatal or not self._setup.skip_bad]
        if stop:
            return stop[0]
        value = () if raw.head is None else unpack(raw.head, raw.slab)
        if raw.head is not None and type(value) is not Beside:
            return value
        if raw.slab is not None and not raw.failed:
            return self._book.of_slab(raw.slab.nbytes).collated(raw.slab, raw.n_samples, raw.n_samples, value)
        if errors:
            return None  # no sample is left
        pids = ", ".join(map(str, self._dead_pids))
        return wrapped(RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly while it collated batch "
                                    f"{raw.tag}"), "in a DataLoader worker process")  # fmt: skip

    def _error(self, sample):
        """(fatal, ExceptionWrapper) of a sample that is not good."""
        tag, slot, worker, state, attempts, _, block = sample
        if state == BAD:
            return unpack_failure(block)
        index = self._index(tag, slot)
        if state == STUCK:
            error = TimeoutError(f"sample {index!r} was given up: its worker did not come to an end")
        else:
            self._look_after()
            pids = ", ".join(map(str, self._dead_pids[-attempts:]))
            error = RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: sample {index!r} was tried "
                                 f"{attempts} times")  # fmt: skip
        return False, wrapped(error, f"in DataLoader worker process {worker}")

    def clear(self, timeout=None):
        """Gives up all that is posted; False when a worker is still at it after timeout seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._crew.clear(int(LOOK_S * 1000)):
            self._look_after()
            if end is not None and time.monotonic() >= end:
                return False
        self._pending.clear()
        return True

    # --- workers ---

    def _look_after(self):
        """Hears from the zygote, and replaces it when it is gone."""
        with self._lock:
            try:
                for what, told in self._keeper.messages() if self._keeper else ():
                    if what == "failed":
                        self._failure = self._failure or told
                    else:
                        self._note_death(told)
            except ZygoteGone:
                if self._failure is None:
                    self._replace_zygote()
        if self._failure is not None:
            raise RuntimeError(f"the worker processes failed: {self._failure}")

    def _index(self, tag, slot):
        index = self._pending.get(tag, (None,))[0]
        return index[slot] if isinstance(index, list) and not self._whole else index

    def _note_death(self, death):
        self._dead_pids.append(death.pid)
        self._warn(describe(death.worker, death.pid, death.exitcode), death.redone, death.replaced)

    def _warn(self, who, redone, replaced):
        was = "was replaced" if replaced else "was not replaced"
        lost = ", ".join(repr(self._index(tag, slot)) for tag, slot in redone)
        warnings.warn(f"{who} and {was}; {f'made again: {lost}' if lost else 'no sample was lost'}", RuntimeWarning,
                      stacklevel=2)  # fmt: skip

    def _replace_zygote(self):
        """What its workers had claimed is done again by the new one's."""
        pid, pids = self._keeper.pid, self.pids
        self._zygotes += 1
        if self._zygotes >= MAX_ZYGOTES:
            self._failure = f"the process that starts them ended {self._zygotes} times"
            return
        self._keeper.wait_for_workers(pids.values())
        self._keeper.end()
        redone = [lost for worker in pids for lost in self._crew.bury(worker)]
        self._dead_pids.extend(pids.values())
        self._keeper = Keeper(self._setup, self._context)
        if self._workers != self._setup.workers:
            self._keeper.send("resize", self._workers)
        self._warn(f"the zygote (pid {pid}) ended with workers {[*pids]}", redone, True)

    @property
    def pids(self):
        """The process of each worker that is there, by its number."""
        at = ((worker, self._crew.worker_at(worker)[0]) for worker in range(MAX_WORKERS))
        return {worker: pid for worker, pid in at if pid}

    @property
    def zygote_pid(self):
        """The process that workers are forked from."""
        return self._keeper.pid

    @property
    def workers(self):
        """How many there should be."""
        return self._workers

    def resize(self, workers):
        """More or fewer workers, from now on; those that are too many finish what they are at."""
        check(workers=(workers, range(1, MAX_WORKERS + 1)))
        if self._setup.kind == "iterable":
            raise ValueError("each worker of an iterable data set has its own iterator: their number cannot change")
        self._workers = workers
        self._keeper.send("resize", workers)

    def stuck(self, seconds):
        """Workers that have been at one sample, or at one batch's collate_fn, for longer than that."""
        found, now = [], time.monotonic_ns()
        for worker in range(MAX_WORKERS):
            pid, kind, tag, slot, since_ns, *_ = self._crew.worker_at(worker)
            if pid and kind and now - since_ns > seconds * 1e9:
                stack = stack_of(pid, self._setup.stacks)
                found.append(Stuck(worker, pid, tag, slot, self._index(tag, slot), (now - since_ns) / 1e9, stack))
        return found

    def kill_stuck(self, worker):
        """Ends a worker; the sample that it is at is given up, as a bad one."""
        self._keeper.send("kill", worker)

    def stats(self):
        """Counters, as a dict: see dr_crew_stats; and deaths, of workers."""
        return {**self._crew.stats(), "deaths": len(self._dead_pids)}

    # --- the end ---

    def close(self):
        """Ends all processes.  Results that were taken stay valid."""
        if os.getpid() != self._pid or not self._fds:
            return
        _open_fleets.discard(self)
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.end()
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self._crew = self._setup = None

    def __del__(self):
        if getattr(self, "_fds", None):
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def check(**settings):
    """Raises ValueError on a setting, given as (value, allowed), that is not allowed."""
    for name, (value, allowed) in settings.items():
        if value not in allowed:
            text = f"{allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else " and ".join(map(repr, allowed))
            raise ValueError(f"{name} is {value!r}, allowed are {text}")


@atexit.register
def _close_all():
    for fleet in list(_open_fleets):
        fleet.close()


@functools.cache
def _finalizer(_pid):
    return util.Finalize(None, _close_all, exitpriority=100)


def _close_at_the_end():
    """Processes of multiprocessing run no atexit, and wait for their children when they end."""
    _finalizer(os.getpid())
