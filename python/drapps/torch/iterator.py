"""Iterator: what every way of running a pass has in common.

It is torch's own base iterator, so that warnings, profiler ranges and the number and order of random draws are torch's.
Any number of threads may share one: each batch goes to one of them.

Ctrl-C may be caught and the pass continued: the state of a pass is changed in functions that _core.defer_sigint calls,
and a batch that was made and not delivered is delivered by the next call (Hand, in cursor.py).  If Ctrl-C is not
caught, the iterator and its workers end: the traceback does not hold it (let_go).
"""

import logging
import os
import traceback
from contextlib import nullcontext, suppress

import numpy
import torch
from torch.utils.data import dataloader as torchs
from torch.utils.data.dataloader import _BaseDataLoaderIter

import drapps
from drapps import _core
from drapps.passes.bad_samples import Occurrences, Replacements
from drapps.passes.cursor import Progress, is_profiled, wait_range
from drapps.passes.order import Order, Work
from drapps.passes.replay import Record, Repeat
from drapps.torch import samplers
from drapps.torch.samplers import length_of, native_id_of, pass_config

# What the first of its kind in a process looks up takes longer when a first batch is waited for, just after a fork.
torch.empty((), dtype=torch.int64, device="cpu").random_(generator=torch.Generator()).item()  # as a base seed
torch.from_numpy(numpy.ndarray((1, 1), numpy.int64, bytearray(8)))

log = logging.getLogger("drapps")

OWN_CODE = os.path.dirname(drapps.__file__) + os.sep, torchs.__file__
PASS_STEP = 0x9E3779B97F4A7C15  # between the seeds of passes, so that neighbours are far apart


class Iterator(_BaseDataLoaderIter):
    """One pass.  A subclass gives _next_data, which offers a batch to the hand of its thread and returns, and, where
    there is something to end, _shutdown_workers."""

    _native_pass = False
    _torch_name = "_MultiProcessingDataLoaderIter"  # profilers know the range by it
    _asks = 2  # torch's with workers asks the sampler twice for an iterator, which some samplers notice

    def __init__(self, loader):
        with self._beginning(loader) as resume:
            self._draw_pass(loader)
            self._profile_name = f"enumerate(DataLoader)#{self._torch_name}.__next__"
            self._begun(loader, resume)

    def _beginning(self, loader, kept_seeds=None):
        """A context in which the pass draws: as torch does, or, continuing, what it drew the first time."""
        if loader._progress is not None:
            loader._progress.hands.commit()
        resume, saved_seeds = loader._take_resume()
        epoch = loader._next_epoch(resume)
        asks = 1 if loader._may_be_inline else self._asks  # torch's default has no workers
        drawn = resume["draws"] if resume else samplers.save_draws(loader, asks, kept_seeds or saved_seeds)
        self._progress = loader._progress = Progress(epoch, drawn, loader._counts)
        return samplers.redrawing(loader, resume) if resume else nullcontext(None)

    def _draw_pass(self, loader):
        """The sampler's iterator and the base seed: in the order in which this pass draws, whatever it ran on first."""
        drawn = self._progress.drawn.draws
        if drawn["kept_seeds"]:  # those workers are gone: these take their place
            with samplers.preserving_generators(loader):
                super().__init__(loader)
            self._draw_later_pass(loader)
            return
        super().__init__(loader)
        if drawn["asks"] == 2:
            self._sampler_iter = iter(self._index_sampler)

    def _begun(self, loader, resume):
        if resume:
            self._base_seed = resume["base_seed"]
        self._progress.drawn.base_seed, self._progress.drawn.native = self._base_seed, self._native_pass
        if resume and "replay" in resume:
            self._progress.hands.yielded = resume["_num_yielded"]
            self._order = self._progress.repeat = Repeat(resume["replay"], self._auto_collation)
        else:
            self._order = Order(pass_config(loader), self._sampler_iter, self._progress, resume)
        self._bad = loader._bad_of_pass()
        length = length_of(loader.dataset)
        self._bad.replacements = Replacements(self._base_seed, length, native_id_of(loader.dataset))
        if not self._native_pass and (self._bad.policy == "replace" or self._bad.equal) and not self._progress.repeat:
            occurrences = Occurrences(length, self._auto_collation)
            for number, indices in enumerate(self._order.passed):
                occurrences.of_work(Work(number, indices))
            self._order.times_of = occurrences.of_work
        if loader.record:
            self._progress.record = Record(self._order, self._auto_collation, self._native_pass)
        self._resumed_at = self._progress.hands.yielded if resume else None

    def _give_up_if_too_many(self, error):
        """An error came of bad samples."""
        if self._bad.too_many:
            self._progress.invalid = f"iterator invalidated: {error}"

    def __next__(self):
        try:
            return self._give()
        except BaseException as error:
            self = None
            _core.defer_sigint(let_go, error)
            raise

    def _give(self):
        if self._progress.invalid:
            raise _core.StateError(self._progress.invalid)
        hand = self._progress.hands.mine()
        if not hand.waits:
            self._wait_for_offer()
        return hand.take()

    def _wait_for_offer(self):
        progress = self._progress  # the pass may go on with another one
        progress.hands.timer.begin_wait()
        try:
            if self._IterableDataset_len_called is not None or is_profiled():
                with wait_range():
                    super().__next__()
            else:  # all that torch would add is a range that no profiler sees, for a fifth of the call's time
                self._next_data()
                self._num_yielded += 1
        except StopIteration:
            self._end(progress)
            raise
        finally:
            progress.hands.timer.end_wait(over=progress.finished)

    def _end(self, progress):
        """The pass is over.  A trainer may take what is left of it, nothing, for an epoch."""
        progress.hands.commit()
        progress.finished = True
        if progress.hands.yielded == self._resumed_at:
            self._resumed_at = None
            log.warning("the state that was loaded is that after the last batch: nothing was left of the pass")

    # --- persistent_workers ---

    def _reset(self, loader, first_iter=False):
        """The next pass with the same workers."""
        if not self._alive() or loader._resume is not None or self._progress.repeat is not None:
            self._shutdown_workers()
            self.__init__(loader)
            return
        self._leave_pass()
        with self._beginning(loader, self.kept_seeds()) as resume:
            self._draw_later_pass(loader)
            self._begun(loader, resume)

    def _draw_later_pass(self, loader):
        """As _draw_pass, with the same workers.  torch draws no base seed then; with `seed`, the epoch decides it."""
        super()._reset(loader)
        kept = self._progress.drawn.draws["kept_seeds"]
        self._base_seed = kept[1] if loader.seed is None else samplers.draw_base_seed(loader)

    @property
    def _workers_seed(self):
        """The base seed that the workers were started with."""
        kept = self._progress.drawn.draws["kept_seeds"]
        return kept[0] if kept else self._base_seed

    def kept_seeds(self):
        """Of the next pass, if it has the same workers: the base seeds that they were started with and that it has."""
        if not self._alive():
            return None
        return self._workers_seed, (self._base_seed + PASS_STEP) % 2**63

    def _alive(self):
        """The workers are there."""
        return False

    def _leave_pass(self):
        """What is in flight from a pass that was left early is given up."""

    # --- for subclasses ---

    def _set_knob(self, knob, value):
        """The user turns a knob of the pass that runs; one that has ended has none."""

    def _shutdown_workers(self):
        """Ends what works for the pass; trainers call it."""


def let_go(error):
    """Clear the iterator from the frames of an exception that is being raised, so that code which keeps the traceback,
    as notebooks do, does not keep the workers.  Frames of a data set or a collate_fn stay as they are."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename.startswith(OWN_CODE):
                with suppress(RuntimeError):  # it runs
                    frame.clear()
        error = error.__context__


def pinned(iterator, batch):
    """The batch in page-locked memory where torch would put it there.  (Not tried: needs an accelerator.)"""
    if not iterator._pin_memory:
        return batch
    return torch.utils.data._utils.pin_memory.pin_memory(batch, iterator._pin_memory_device)
