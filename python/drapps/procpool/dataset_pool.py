"""DatasetPool: worker processes that make the batches of a Python data set, for torch's DataLoader.

The main process posts batches of indices and takes Results; process_pool.py has what all pools share.  The value of a
Result is the collated batch: tensors over the batch's slab in shared memory, or what a worker's collate_fn returned,
unpacked over its block.  Neither is copied in the main process.
"""

import mmap
import os
from collections import namedtuple
from dataclasses import dataclass, replace
from multiprocessing.reduction import DupFd
from typing import Any

from torch._utils import ExceptionWrapper
from torch.utils.data import default_collate

from drapps import _core
from drapps.procpool.layout import Beside, LayoutRegistry, new_layouts
from drapps.procpool.pack import PackError, Requests, pack, unpack
from drapps.procpool.prefetch_window import bytes_of
from drapps.procpool.process_pool import CLAIM_NS, MAX_BATCHES, TOGETHER_NS, NothingPosted, ProcessPool, Stuck, check
from drapps.procpool.torch_pack import Failure, unpack_failure, wrapped
from drapps.procpool.worker import Worker
from drapps.procpool.worker_loop import BAD, GOOD, STUCK

__all__ = ["DatasetPool", "NothingPosted", "Result", "Sample", "Stuck"]

WHOLE_NS = (1 << 32) - 1
Sample = _core.Sample  # error: an ExceptionWrapper, or None

Result = namedtuple("Result", "tag value samples worker number")  # value: the batch, or an ExceptionWrapper


def with_error(sample, error):
    """Return a copy of a sample with its error, an ExceptionWrapper, in the place of the block."""
    return Sample((sample.tag, sample.slot, sample.worker, sample.state, sample.attempts, sample.ns, None, error))


class DatasetPool(ProcessPool):
    """Worker processes for a data set of torch.

    kind: "map" or "iterable".  bad: "raise": a sample's exception is the result of its batch; "report": it is in the
    result's samples, and the batch is made of the others (None when there are none); so a data set with __getitems__ is
    asked for one sample at a time.  states: of each worker's iterable data set, or None: where items are skipped, it is
    put there instead of being iterated.

    whole: whether the samples of a batch are asked for at once.
    """

    def __init__(self, dataset, collate_fn, *, workers, kind="map", auto_collation=True, drop_last=False, base_seed=0,
                 shared_seed=None, worker_init_fn=None, context=None, in_order=True, lanes=True, memory_limit=0,
                 cpu_limit=0, max_attempts=3, seed_samples=True, bad="raise", max_batches=MAX_BATCHES,
                 states=None):  # fmt: skip
        check(kind=(kind, ("map", "iterable")), bad=(bad, ("raise", "report")))
        super().__init__(workers, context=context, in_order=in_order, lanes=lanes, memory_limit=memory_limit,
                         cpu_limit=cpu_limit, max_attempts=max_attempts, max_batches=max_batches)  # fmt: skip
        self._fds.insert(0, new_layouts())
        self._registry = LayoutRegistry(self._fds[0])
        self.whole = not auto_collation or (bad == "raise" and bool(getattr(dataset, "__getitems__", None)))
        self._slots = 0
        self._epoch_number = -1
        self.begin_epoch(base_seed, shared_seed)
        self._prepare(Setup(dataset, collate_fn, worker_init_fn, states, kind, auto_collation, drop_last, base_seed,
                            shared_seed, workers, in_order, seed_samples, bad == "report", self._shmpool, *self._fds))

    # --- posting ---

    def begin_window(self, default, **hints):
        """Begin a pass of the prefetch window, whose hints of how batches are made are added here."""
        setup = self._setup
        spread = setup.kind == "map" and setup.collate_fn is default_collate and (
            setup.skip_bad or not getattr(setup.dataset, "__getitems__", None))  # fmt: skip
        self.window.begin_pass(default, by_worker=not spread, limit_started=setup.kind == "map", **hints)

    def begin_epoch(self, base_seed, shared_seed=None):
        """Use other seeds and new iterators from now on.  What was posted before must be taken or cleared."""
        self._epoch_number += 1
        self._requests = Requests(self._epoch_number, base_seed, shared_seed)
        self._skipped = [0] * self._workers  # items that each iterator begins after
        self._asked = [0] * self._workers  # batches, of each iterator

    def post(self, tag, index, costs=None, worker=-1, keep=False, keys=None):
        """Post a batch.  Returns False when the shmpool is full.

        index: the indices of a batch, or, without auto_collation, one index.  Of an iterable data set: the number of
        items (None without auto_collation); worker: the one that has the iterator.  costs: predicted nanoseconds of
        each slot.  keep: its samples stay together out of order too.  keys: the tag and slot that key each sample's
        random numbers, if these are not its own.
        """
        if self._setup.kind == "iterable":
            return self._post_items(tag, index, worker)
        if self.whole or not (index := list(index)):
            request = self._requests.of_whole(index)
            return self._post(tag, index, 1, request, None, worker, min_claim_ns=WHOLE_NS)
        self._slots = self._slots or len(index)
        together = self._setup.collate_fn is not default_collate and self._cheap
        return self._post(tag, index, len(index), self._requests.of_slots(index, keys), costs, worker,
                          min_claim_ns=TOGETHER_NS if together else CLAIM_NS,
                          keep=keep or together or len(index) != self._slots)  # fmt: skip

    def _post_items(self, tag, n, worker):
        if not 0 <= worker < self._workers:
            raise ValueError(f"worker must be an int from 0 to {self._workers - 1}, got {worker!r}")
        request = self._requests.of_items(n, self._skipped[worker], self._asked[worker])
        posted = self._post(tag, f"items of worker {worker}", 1, request, None, worker, min_claim_ns=WHOLE_NS)
        self._asked[worker] += posted
        return posted

    def expect(self, median_ns):
        """Set the median cost of samples, so that slow ones are known from the first post on."""
        self._shmpool.expect(int(median_ns))

    def skip_items(self, worker, n):
        """Let a worker's iterator begin after its first n items.  To be called before the first post for it."""
        self._skipped[worker] = n

    # --- taking ---

    def _result(self, raw):
        failures = {i: self._failure_of(sample) for i, sample in enumerate(raw.samples) if sample.state != GOOD}
        samples = raw.samples
        for i, failure in failures.items():
            samples[i] = with_error(samples[i], failure.error)
        self._delivered(samples)
        try:
            value = self._value(raw, failures.values())
        except Exception:  # of unpickling: the batch was taken, so this is its result
            value = ExceptionWrapper(
                where=f"in the main process, with what DataLoader worker process {raw.worker} sent"
            )
        if value is not None and not isinstance(value, ExceptionWrapper):
            self.window.batch_made(bytes_of(raw), len(samples))
        return Result(raw.tag, value, samples, raw.worker, raw.number)

    def _value(self, raw, failures):
        if raw.failed and raw.head is not None:
            return unpack_failure(raw.head).error
        stop = [failure.error for failure in failures if failure.fatal or not self._setup.skip_bad]
        if stop:
            return stop[0]
        value = () if raw.head is None else unpack(raw.head)
        if raw.head is not None and type(value) is not Beside:
            return value
        if raw.slab is not None and not raw.failed:
            return self._registry.of_slab(raw.slab.nbytes).collated(raw.slab, raw.n_samples, raw.n_samples, value)
        if failures:
            return None  # no sample is left
        pids = ", ".join(map(str, self._dead_pids))
        return wrapped(RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly while it collated batch "
                                    f"{raw.tag}"), "in a DataLoader worker process")  # fmt: skip

    def _failure_of(self, sample):
        """Return the Failure of a sample that is not good."""
        if sample.state == BAD:
            return unpack_failure(sample.block)
        index = self._index(sample.tag, sample.slot)
        if sample.state == STUCK:
            error = TimeoutError(f"sample {index!r} was given up: its worker did not come to an end")
        else:
            self._check_workers()
            pids = ", ".join(map(str, self._dead_pids[-sample.attempts:]))
            error = _core.BadSampleError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: sample {index!r} "
                                         f"was tried {sample.attempts} times; the last: "
                                         f"{self._last_death}")  # a RuntimeError, as torch's
        return Failure(False, wrapped(error, f"in DataLoader worker process {sample.worker}"))

    def _traced(self):
        return {} if self.whole else super()._traced()

    def _index(self, tag, slot):
        index = self._indices.get(tag)
        return index[slot] if isinstance(index, list) and not self.whole else index

    def resize(self, workers):
        """Change the number of workers.  Those that are too many finish their claims first."""
        if self._setup.kind == "iterable":
            raise ValueError("each worker of an iterable data set has its own iterator: their number cannot change")
        super().resize(workers)


# --- settings of the workers ---


@dataclass(frozen=True)
class Setup:
    """The settings of a pool's workers."""

    dataset: Any
    collate_fn: Any
    worker_init_fn: Any
    states: Any  # of iterable data sets that continue: the state of each worker's, or None
    kind: str  # "map" or "iterable"
    auto_collation: bool
    drop_last: bool
    base_seed: int
    shared_seed: int | None  # of data pipes
    workers: int
    in_order: bool
    seed_samples: bool
    skip_bad: bool  # a sample's error is reported, and its batch made of the others
    shmpool: Any
    layouts: int  # the descriptor of the LayoutRegistry's file
    stacks: int  # the descriptor of the file where workers write their Python stacks when asked

    def opened(self):
        """Return the setup: a forked process has everything."""
        return self

    def packed(self):
        """Return the setup for a process that is started afresh."""
        return PackedSetup(self)

    def new_worker(self, number):
        """Return a worker, before its process is forked."""
        return Worker(self, number)


class PackedSetup:
    """A Setup that multiprocessing pickles for a process that is started afresh.

    The data set is packed into a file in memory: the process reads it once, and maps its arrays.
    """

    def __init__(self, setup):
        self._setup = setup
        self._fd = os.memfd_create("drapps-setup")

    def close(self):
        """Close the file, once the process is started."""
        os.close(self._fd)

    def __reduce__(self):
        setup = self._setup
        try:
            pack((setup.dataset, setup.collate_fn, setup.worker_init_fn, setup.states), self._map)
        except PackError as error:
            raise error.__cause__ from None
        bare = replace(setup, dataset=None, collate_fn=None, worker_init_fn=None, states=None, shmpool=None)
        fds = (self._fd, setup.shmpool.fd, setup.layouts, setup.stacks)
        return ReceivedSetup, (bare, tuple(map(DupFd, fds)))

    def _map(self, nbytes):
        os.ftruncate(self._fd, nbytes)
        return mmap.mmap(self._fd, nbytes)


class ReceivedSetup:
    """A PackedSetup in the process that received it."""

    def __init__(self, bare, fds):
        self._bare, self._fds = bare, fds

    def opened(self):
        """Return the Setup.  An exception here is the data set's own."""
        parts, shmpool, layouts, stacks = (fd.detach() for fd in self._fds)
        memory = mmap.mmap(parts, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        os.close(parts)
        dataset, collate_fn, worker_init_fn, states = unpack(memory)
        return replace(self._bare, dataset=dataset, collate_fn=collate_fn, worker_init_fn=worker_init_fn,
                       states=states, shmpool=_core.join_shmpool(shmpool), layouts=layouts, stacks=stacks)  # fmt: skip
