"""DataLoader: torch.utils.data.DataLoader's arguments and behaviour, run by drapps.

    from drapps import DataLoader  # was: from torch.utils.data import DataLoader

What a pass runs on is chosen when it begins: natively (native_iter.py), in worker processes (pool_iter.py), or, with
num_workers=0, in the caller (inline.py).  docs/pytorch.md is the guide.
"""

import linecache
import logging
import operator
import os
import weakref
from collections import Counter
from typing import TypeVar

import torch
from torch.utils import data
from torch.utils.data import dataloader as torchs
from torch.utils.data.dataloader import _DatasetKind

from drapps import _core, metrics
from drapps.argument_hints import named_arguments
from drapps.arguments import DATALOADER, EPOCH, check
from drapps.counted import counted
from drapps.ledger import costs_of
from drapps.passes import replay
from drapps.passes.bad_samples import BadCounter, BadList
from drapps.passes.counters import Counters, EngineCache
from drapps.passes.cursor import Progress
from drapps.passes.order import sampler_chain
from drapps.passes.pass_state import running, warn_of_dropped_state
from drapps.procpool.tuning import CONTROLLER_KNOBS, POSTING_KNOBS, Tuning
from drapps.sched import check_knob, knobs
from drapps.stat_keys import with_all_keys
from drapps.torch import explain, samplers, state as states, workers
from drapps.torch.pool_iter import PoolIter
from drapps.torch.inline import InlineIter
from drapps.torch.iterator import PASS_STEP
from drapps.torch.lower import lower
from drapps.torch.lower_collate import lower_collate
from drapps.torch.native_iter import NativeIter
from drapps.torch.open_files import open_file_in
from drapps.torch.samplers import RandomSampler, RankBatchSampler, has_ranks, length_of

log = logging.getLogger("drapps")

_T_co = TypeVar("_T_co", covariant=True)

COUNTS = ("batches", "samples", "epochs", "bad_samples", "wait_ns", "step_ns")
PREFETCH = 2  # torch's prefetch_factor where none is given
NOT_GIVEN = workers.NOT_GIVEN
RESTORED = "iterator invalidated: a state was loaded"
CLOSED = "iterator invalidated: the loader was closed"

# torch warns of too many workers, here and there, and Python quotes the line: it would read both files, 2000 lines,
# while a first batch is waited for.
for _quoted in (torchs.__file__, __file__):
    linecache.getlines(_quoted)


class DataLoader(data.DataLoader[_T_co]):
    """torch.utils.data.DataLoader, with all its arguments.

    num_workers has another default: if it is not given, drapps decides, by the container's CPUs.  n: exactly n
    processes (threads where everything runs natively).  0: everything in the caller.

    These arguments are added, and must be named.  docs/options.md compares them with those of Pipeline.loader and C.

    Order:

    seed: order and randomness of epoch e follow from (seed, e), whatever the global generator did before.
    rank, world_size: the share of this process of each global batch; rank="auto": from torch.distributed or the
        environment.  Not given: no sharding, as torch.
    record: record which samples each batch holds, so that order() returns them and replay() repeats them.  Samples then
        draw the same random numbers with num_workers=0 as in worker processes.

    Bad samples:

    on_bad_sample: a sample that raises an error: "raise" it, leave the sample out ("skip"), or put another one in its
        place ("replace").
    max_bad: "skip" and "replace" fail after this many bad samples in a pass; None: 1000.

    Limits:

    memory_limit: bytes of batches in flight; None: a quarter of the container's memory.
    cpu_limit: CPUs that the workers may use together, 0.01 to 512; also limits the number of workers that drapps
        decides on.  None: no limit but the container's.

    Cache:

    cache: store the results of deterministic stages: a folder, or "auto".
    cache_limit: bytes on disk of everything in the cache's folder; None: half of the free space.
    cache_memory: bytes of a cache in memory, in front of the one on disk or without it, shared by the processes of the
        machine; None: none.
    adaptive_compression: stored results are compressed by whichever codec is measured to suit data and machine best, or
        by none; False: always by LZ4.
    ranges: where everything runs natively, read only the bytes of a JPEG that its crop needs, once its seek points are
        known: from remote sources, and from local files if that is measured to be faster ("auto"), whenever possible
        ("on"), or never ("off").

    Data on a server:

    offload: which ops a drapps server runs, for a data set that it serves: as for Pipeline.loader.

    Tuning:

    policy: sets workers, prefetch and the other knobs while a pass runs: a name of drapps.policies(); None: "analytic";
        "fixed": no changes.  Values that are given (num_workers, prefetch_factor) are not changed.
    weights: the aims of the policy: "step" (default: the consumer never waits, with little CPU), "draadp" (throughput,
        latency, balance, energy), "drapps" (throughput, latency, waiting, balance), or {name: number} or
        "name=number,..." to change single weights.
    resource_monitor: the drapps.Monitor that the policy reads; several loaders may share one.  None: one that all
        loaders of the process share.
    lanes: samples that are slow never occupy all workers.

    Tracing:

    trace: write a trace of the run to this file.

    >>> import torch
    >>> from drapps import DataLoader
    >>> loader = DataLoader(torch.arange(6), batch_size=3, num_workers=0)
    >>> [batch.tolist() for batch in loader]
    [[0, 1, 2], [3, 4, 5]]
    """

    @named_arguments
    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=NOT_GIVEN,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
                 pin_memory_device="", in_order=True, on_bad_sample="raise", max_bad=None, memory_limit=None,
                 cpu_limit=None, seed=None, cache=None, cache_limit=None, cache_memory=None, offload="auto",
                 ranges="auto", rank=None, world_size=None, lanes=True, policy=None, resource_monitor=None,
                 adaptive_compression=True, weights=None, trace=None, record=False):  # fmt: skip
        given = locals()
        check(DATALOADER, {name: given[name] for name in DATALOADER})
        self.on_bad_sample, self.max_bad, self.memory_limit = on_bad_sample, max_bad, memory_limit or 0
        self.cpu_limit, self.cache, self.cache_limit, self.lanes = cpu_limit, cache, cache_limit or 0, lanes
        self.cache_memory, self.offload, self.ranges = cache_memory or 0, offload, ranges
        self.rank, self.world_size = _rank(rank, world_size)
        self.seed, generator = self._seed(seed, generator, shuffle, _handed_on(num_workers))
        self.adaptive_compression, self.weights, self.trace = adaptive_compression, weights, trace
        prefetch_factor = _user_prefetch(prefetch_factor, num_workers)
        self._tuning = Tuning(policy, resource_monitor, adaptive_compression, weights, trace,
                                  pinned=_given(num_workers, prefetch_factor))  # fmt: skip
        self.policy = self._tuning.policy_name
        self._counts, self._epoch = Counter(), 0
        self._bad_list = BadList(dataset)
        self._progress = self._resume = self._plan = self._costs = None
        self.record = record
        self._iterators = weakref.WeakSet()  # passes that may have workers
        self._engines, self._counters = EngineCache(), Counters()
        iterable = isinstance(dataset, data.IterableDataset)
        if iterable and record:
            raise _core.ArgumentError("record=True needs a map-style data set: an iterable one gives what comes next")
        if shuffle and sampler is None and batch_sampler is None and not iterable:
            shuffle, sampler = None, RandomSampler(dataset, generator=generator)
        needs = bool(prefetch_factor or persistent_workers or timeout or multiprocessing_context)
        num_workers = self._choose_workers(num_workers, iterable, needs)
        super().__init__(dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate_fn, pin_memory,
                         drop_last, timeout, worker_init_fn, multiprocessing_context, generator,
                         prefetch_factor=prefetch_factor, persistent_workers=persistent_workers,
                         pin_memory_device=pin_memory_device, in_order=in_order)  # fmt: skip
        metrics.from_environment()
        if (self._only_threads and not self._is_native()) or (iterable and self._why_no_processes()):
            self._give_up_workers()
        if self.world_size > 1:
            self._take_part()

    def _choose_workers(self, given, iterable, needs):
        """Their number.  Where none was given there may be none, but for what needs them."""
        decided = getattr(given, "decided", False)
        self._needs_workers = needs
        self._only_threads = workers.why_not_fork() if decided and not needs else None  # the reason
        return workers.Count(workers.decide(self.cpu_limit, iterable, needs), decided=True) if decided else given

    def _seed(self, seed, generator, shuffle, handed_on):
        """(seed, generator).  Ranks must draw the same order: without a seed they use 0, as DistributedSampler.

        The generator is seeded at once: who hands it on may use it without the loader.
        """
        if seed is not None and generator is not None and not handed_on:
            raise ValueError("seed and generator exclude each other: give one")
        if seed is None and generator is None and shuffle and self.world_size > 1:
            seed = 0
        return seed, generator if seed is None else (generator or torch.Generator()).manual_seed(seed % 2**63)

    def _take_part(self):
        if isinstance(self.sampler, data.DistributedSampler):
            raise ValueError("rank and world_size exclude a DistributedSampler: give one")
        if self._iterable or type(self.batch_sampler) is not data.BatchSampler:
            raise ValueError("rank and world_size need batch_size and a map-style data set")
        mine = RankBatchSampler(self.sampler, self.batch_size, self.drop_last, self.rank, self.world_size)
        object.__setattr__(self, "batch_sampler", mine)

    @property
    def num_workers(self):
        """Worker processes, or threads where everything runs natively; an int."""
        workers.watch()
        return self._num_workers

    @num_workers.setter
    def num_workers(self, n):
        options = {name: getattr(self, name) for name in workers.OPTIONS}
        if n and vars(self).get("prefetch_factor", PREFETCH) is None:  # there were no workers before
            self.prefetch_factor = PREFETCH
        self._num_workers = workers.Count(n, getattr(n, "decided", False), options)
        vars(self)["num_workers"] = self._num_workers  # Lightning builds loaders anew from what vars() shows

    @property
    def _may_be_inline(self):
        """Nobody asked for worker processes."""
        return self._num_workers.decided and not self._needs_workers

    @property
    def resource_monitor(self):
        """The drapps.Monitor that was given, or None."""
        return self._tuning.monitor

    @property
    def _iterable(self):
        return self._dataset_kind == _DatasetKind.Iterable

    # --- iteration ---

    def __iter__(self):
        iterator = super().__iter__()
        self._iterators.add(iterator)
        return iterator

    def _get_iterator(self):
        if self.num_workers == 0 and not self._goes_on_natively():
            self._engines.close_native()
            return InlineIter(self)
        if self.num_workers > 0 and self.prefetch_factor <= 0:
            raise AssertionError(f"prefetch_factor is {self.prefetch_factor}, must be greater than 0 with workers")
        self.check_worker_number_rationality()
        if self._is_native():
            return NativeIter(self)
        self._engines.close()
        # States of an iterable data set depend on the number of workers, which was decided when the loader was made.
        is_fixed = self._iterable and not (self._may_be_inline and workers.why_no_children())
        if not is_fixed and (why := self._why_no_processes()):
            log.info("%s; num_workers=n starts processes, without it they are not", why)
            self._give_up_workers()
            return InlineIter(self)
        return PoolIter(self)

    def _goes_on_natively(self):
        """The state that was loaded is that of a native pass, and this loader can make the rest of it: Python code
        would draw other random numbers."""
        resume = self._resume
        if resume is None or not running(resume):
            return False
        return (resume.get("replay") or resume).get("native", False) and self._is_native()

    def check_worker_number_rationality(self):
        """torch warns of more worker processes than CPUs: not where they are threads."""
        if self.num_workers <= len(os.sched_getaffinity(0)) or not self._is_native():
            super().check_worker_number_rationality()

    def _why_no_processes(self):
        """The reason why Python code runs in the caller although the user did not ask for it; None: it does not."""
        if not self._may_be_inline:
            return None
        why = self._only_threads or workers.why_no_children()  # a loader may be handed to a daemon
        file = None if why else open_file_in(self.dataset)
        return f"the data set holds something open: {file}" if file else why

    def _give_up_workers(self):
        self.num_workers, self.prefetch_factor = workers.Count(0, decided=True), None

    def _continue_inline(self, progress):
        """The rest of a pass in the caller, and later passes too."""
        state = progress.as_dict()
        self._give_up_workers()
        self._resume = state  # which may have gaps even in order, where several threads share the pass
        inline = InlineIter(self)
        inline._progress.record = progress.record  # of the pass, wherever it is made
        return inline

    def _lowered(self):
        """What runs natively of a map-style data set: looked at anew for each pass, because transforms may change."""
        collate = lower_collate(self.collate_fn)
        why = self._why_one_by_one(collate)
        plan = lower(self.dataset, why is None, self._plan, why, collate)
        if plan.goes_on and self.on_bad_sample != "raise":  # what the engine cannot read may be no bad sample
            why = f"with on_bad_sample={self.on_bad_sample!r} the data set decides which samples cannot be read"
            plan = lower(self.dataset, False, self._plan, why, collate)
        return plan

    def _why_one_by_one(self, collate):
        """Why Python code has to see each sample, however it is made; None: it has not."""
        if not self._auto_collation:
            return "batch_size=None asks for single samples"
        if collate is None:
            return f"collate_fn ({explain.name_of(self.collate_fn)}) is Python code that gets single samples"
        if not workers.harmless(self.worker_init_fn):
            return f"worker_init_fn ({explain.name_of(self.worker_init_fn)}) may change the data set in the workers"
        return None

    def _is_native(self):
        """Whether the engine makes the batches of a pass that begins now."""
        self._plan = None if self._iterable else self._lowered()
        return self._plan is not None and self._plan.is_native

    def set_epoch(self, epoch):
        """Makes the next iter() begin that epoch: of the order and randomness of `seed`, and of samplers that have a
        set_epoch, too.  A state that was loaded is kept if it is of the same epoch; else a warning is logged and it is
        dropped.

        >>> loader = DataLoader(torch.arange(6), batch_size=3, num_workers=0, shuffle=True, seed=1)
        >>> first = [batch.tolist() for batch in loader]
        >>> loader.set_epoch(0)
        >>> [batch.tolist() for batch in loader] == first
        True
        """
        check(EPOCH, {"epoch": epoch})
        epoch = operator.index(epoch)
        if epoch != self._epoch:
            if self._resume is not None and states.has_rest(self, self._resume):
                warn_of_dropped_state(epoch, self._epoch)
            self._resume = None
        self._epoch = epoch
        for sampler in sampler_chain(self._index_sampler):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)

    def _next_epoch(self, resume):
        """The number of the pass that begins now; its seed is set."""
        epoch = resume["epoch"] if resume else self._epoch
        self._epoch = epoch + 1
        self._counts["epochs"] += 1
        if self.seed is not None and not resume:
            self.generator.manual_seed((self.seed + epoch * PASS_STEP) % 2**63)
        return epoch

    def _bad_of_pass(self):
        """Who counts the bad samples of the pass that begins now."""
        return BadCounter(self.on_bad_sample, self.max_bad, self.on_bad_sample == "skip" and has_ranks(self),
                          self._counts, self._bad_list, self._progress.epoch)  # fmt: skip

    def _sample_costs(self):
        self._costs = self._costs or (costs_of(self.dataset, length_of(self.dataset)) if self.lanes else None)
        return self._costs

    # --- state ---

    def state_dict(self):
        """Where the latest pass is: small, made of plain values, valid for another number of workers.

        At the end of a pass, it is the beginning of the next one.
        """
        progress = self._progress
        if progress is None or self._resume is not None:
            return dict(self._resume or self._between())
        return self._between() if progress.finished else self._state_of(progress)

    def _state_of(self, progress):
        if progress.made_with is None:
            progress.made_with = states.made_with(self)
        return {**progress.as_dict(), "drapps": states.VERSION, "made_with": dict(progress.made_with)}

    def _between(self):
        """The state between two passes: that of the next one, which has drawn nothing."""
        kept = self._iterator.kept_seeds() if self._iterator is not None else None
        coming = Progress(self._epoch, samplers.save_draws(self, kept_seeds=kept), self._counts)
        coming.finished = self._progress is not None
        return self._state_of(coming)

    def load_state_dict(self, state):
        """The next iter() continues where the state was saved; a pass that runs is given up.

        state: of this rank; where it was saved out of order by another number of ranks, the list of all of them.
        """
        placed = states.resume_point(self, state)
        if "replay" in placed:
            self._check_replay(placed["replay"])
        self._give_up(RESTORED)
        self._progress = None
        self._epoch, self._resume = placed["epoch"], placed

    def _take_resume(self):
        """Once, what was loaded: (the state to continue from, or None: a new pass begins; the kept_seeds of that)."""
        found, self._resume = self._resume, None
        if found is None:
            return None, None
        if running(found):
            return found, None
        samplers.restore_generators(self, found["draws"]["generators"])
        return None, found["draws"]["kept_seeds"]

    # --- repeating ---

    def order(self):
        """What the batches of the latest pass were made of, in the order in which they came; needs record=True.

        A dict of plain values, for torch.save; also in the middle of a pass and after a break.

        >>> loader = DataLoader(torch.arange(6), batch_size=3, num_workers=0, shuffle=True, seed=1, record=True)
        >>> first = [batch.tolist() for batch in loader]
        >>> loader.replay(loader.order())
        >>> [batch.tolist() for batch in loader] == first
        True
        """
        progress = self._progress
        if progress is None or progress.record is None:
            raise _core.StateError("no pass is recorded: it needs record=True and a pass that has begun")
        state = self._state_of(progress)
        return {key: state[key] for key in ("drapps", "made_with", "epoch", "base_seed")} | progress.record.as_dict()

    def replay(self, order):
        """The next iter() delivers the batches of an order() again, bit for bit, also with another number of workers
        or in_order=True; a pass that runs is given up."""
        self.load_state_dict(replay.state_of(order, self._between(), self.world_size))

    def _check_replay(self, order):
        """Raises where a pass would not be made as it was recorded.  With num_workers=0 it can be made either way."""
        native = self._is_native() and not (self.num_workers == 0 and not order["native"])
        replay.check_native(order, native)

    # --- looking inside ---

    def explain(self):
        """What runs where, and why not natively, as text."""
        return explain.text(self)

    def stats(self):
        """Counters since the loader was made, as a dict; docs/stats.md lists them."""
        if self._progress is not None:
            self._progress.hands.commit()
        for iterator in list(self._iterators):
            iterator._progress.hands.timer.count()
        counts = {name: self._counts[name] for name in COUNTS}
        return with_all_keys({**self._counters.stats(), **counts, "delivered_samples": counts["samples"],
                              "epoch": max(0, self._epoch - 1), **self._tuning.stats(self._begins_with())})  # fmt: skip

    def bad_samples(self):
        """The samples that were left out or replaced, oldest first and at most the newest 1000: a list of named tuples
        (index, name, error, epoch); name: the file, where it is known, or the key.

        >>> for bad in loader.bad_samples():
        ...     print(bad.name, bad.error)
        """
        return self._bad_list.newest()

    def decisions(self, after=0):
        """The last decisions of the policy in the latest pass, with numbers above `after`, oldest first: a list of
        drapps.Decision.  Empty where nothing is turned: with num_workers=0, in passes of a moment, and in a forked
        child, whose parent's they are.

        >>> loader.decisions()
        []
        """
        return self._tuning.decisions(after)

    def set(self, knob, value):
        """Changes a setting, a name of drapps.knobs(), of passes that run and of later ones: no policy turns it then.

        Native passes have all of them; worker processes have "workers" (not those of iterable data sets, which have
        iterators), "prefetch", "prefetch_bytes", "lane_threshold", "cpu_ceiling" and "priority"; with num_workers=0
        there are none.

        >>> loader.set("workers", 2)
        >>> loader.get("workers")
        2
        """
        value = check_knob(knob, value)
        self._check_has(knob, value)
        if knob == "workers" and value < 1:
            raise _core.ArgumentError(f"workers must be a positive int, got {value!r}")
        for iterator in list(self._iterators):
            iterator._set_knob(knob, value)
        if knob == "workers":
            self.num_workers = value
        self._tuning.pin(knob, value)

    def pause(self):
        """What runs inside the `with` block is no training: an evaluation, a checkpoint.

        The policy decides nothing meanwhile and does not take the silence for a slow consumer; what was asked of the
        workers before is made.  Afterwards all settings are what they were.  Pauses nest.

        >>> with loader.pause():
        ...     accuracy = 0.5  # evaluate, save a checkpoint
        """
        return self._tuning.pause()

    def set_weights(self, weights):
        """Changes what the policy aims for, in the pass that runs and in later ones; weights: as for the loader, None:
        "step".

        >>> loader.set_weights({"energy": 0.4})
        """
        self._tuning.set_weights(weights)

    def _check_has(self, knob, value):
        """Raises where a pass that begins now would not have that knob, or not that value of it."""
        may_get_workers = knob == "workers" and self.num_workers.decided
        if self.num_workers == 0 and not may_get_workers:
            raise _core.ArgumentError(f"{knob}: with num_workers=0 all is done in the caller and this loader has no "
                                      "workers to change; make it with num_workers=1 or more")  # fmt: skip
        if knob == "workers" and self._iterable:
            raise _core.ArgumentError(f"workers = {value}: each worker of an iterable data set has its own iterator, "
                                      "so their number cannot change; make a loader with num_workers")  # fmt: skip
        of_processes = knob in (*POSTING_KNOBS, *CONTROLLER_KNOBS) and not (knob == "priority" and value > 0)
        if not of_processes and not self._is_native():
            raise _core.ArgumentError(f"{knob} = {value}: not with worker processes, whose knobs are "
                                      f"{', '.join((*POSTING_KNOBS, *CONTROLLER_KNOBS))} (-1 or 0)")  # fmt: skip

    def get(self, knob):
        """The value of a setting: what set() was called with, else as it is in the pass that runs, or was in the last.

        Before a pass has run for a moment, "workers" and "prefetch" alone are known.
        """
        names = [row.name for row in knobs()]
        if knob not in names:
            raise _core.ArgumentError(f"knob must be one of {', '.join(map(repr, names))}, got {knob!r}")
        found = self._tuning.get(knob) if self.num_workers else None
        found = self._begins_with().get(knob) if found is None else found
        if found is None:
            raise _core.StateError(f"{knob} is not known before a pass has run for a moment, and with num_workers=0")
        return found

    def _begins_with(self):
        """Knobs of a pass, before anything turns them."""
        ahead = {"prefetch": int(self.prefetch_factor * self.num_workers)} if self.num_workers else {}
        return {"workers": int(self.num_workers), **ahead}

    # --- closing ---

    def _give_up(self, why):
        for iterator in list(self._iterators):
            iterator._progress.invalid = why
            iterator._shutdown_workers()
        self._iterators.clear()
        self._iterator = None

    def close(self):
        """Ends the workers of passes that run.  Batches that are still held stay valid; iter() begins anew."""
        self._give_up(CLOSED)
        self._engines.close()
        self._tuning.close()

    def __getstate__(self):
        """A copy has no pass that runs."""
        mine = {**vars(self), "_iterator": None}
        for name in ("_iterators", "_progress", "_plan", "_costs"):
            del mine[name]
        return mine

    def __setstate__(self, mine):
        vars(self).update(mine, _iterators=weakref.WeakSet(), _progress=None, _plan=None, _costs=None)

    def __repr__(self):
        n = length_of(self.dataset)
        samples = "" if n is None else f" with {counted(n, 'sample')}"
        batches = "single samples" if self.batch_size is None and self.batch_sampler is None else (
            f"batches of {self.batch_size}" if self.batch_size else f"batches of {type(self.batch_sampler).__name__}")
        n_workers = int(self.num_workers)
        where = f"{n_workers or 'no'} worker{'' if n_workers == 1 else 's'}"
        return f"<drapps.{type(self).__name__} of {type(self.dataset).__name__}{samples}: {batches}, {where}>"

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


# --- arguments ---


def _handed_on(num_workers):
    """Whether the loader is rebuilt from the attributes of another one."""
    return bool(getattr(num_workers, "options", None))


def _user_prefetch(prefetch_factor, num_workers):
    """The user's prefetch_factor.  In a loader that a trainer rebuilds, torch's default is not the user's: None."""
    rebuilt = _handed_on(num_workers) and num_workers.decided
    return None if rebuilt and prefetch_factor == PREFETCH else prefetch_factor


def _given(num_workers, prefetch_factor):
    """Knobs that the user has set."""
    workers_given = not getattr(num_workers, "decided", False)
    return ("workers",) * workers_given + ("prefetch",) * (prefetch_factor is not None)


def _rank(rank, world_size):
    if rank is None and world_size is None:
        return 0, 1
    from drapps.pipeline import _rank as found

    rank, world_size = found(rank, world_size)
    if rank is None or world_size is None or not 0 <= rank < world_size:
        raise _core.ArgumentError(
            f"rank must be 0 to world_size - 1, and both must be given, got rank={rank!r}, world_size={world_size!r}"
        )
    return rank, world_size
