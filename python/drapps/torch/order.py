"""Order: the batches of indices of one pass, numbered as the sampler gave them.

A pass that continues another begins after what was delivered.  Out of order, that leaves gaps: their samples are then
made into batches anew, each sample under the number and slot that it first had, which its randomness hangs on.
"""

from functools import partial
from itertools import chain, islice, repeat
from typing import NamedTuple

from torch.utils import data

from drapps import _core
from drapps.torch import draws
from drapps.torch.samplers import Origin, RandomSampler, RankBatchSampler


class Work(NamedTuple):
    """One batch to make."""

    number: int
    indices: object  # a list of indices; without batches (batch_size=None), one index
    places: list = None  # (number, slot) of each sample; None: (number, 0), (number, 1), ...
    times: list = None  # natively: how often each sample came before in the pass, where that is counted here

    @property
    def first(self):
        """The place of its first sample, which no other batch has."""
        return self.places[0] if self.places else (self.number, 0)


def places_of(work, n):
    """(number, slot) of each of its n samples."""
    return work.places or [(work.number, slot) for slot in range(n)]


def stateful(thing):
    """It can say where it is and go there."""
    return hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")


def size_of(indices):
    """Samples of a batch; what only __getitems__ understands, as a slice, counts as one."""
    return len(indices) if hasattr(indices, "__len__") else 1


def mixable(loader):
    """Samples may go to other batches than the sampler put them in: torch's own plain batches."""
    plain = loader._auto_collation and type(loader.batch_sampler) in (data.BatchSampler, RankBatchSampler)
    return plain and not getattr(loader.dataset, "__getitems__", None)


class Order:
    """Gives Work until the sampler ends; keeps the pass's progress informed.

    passed: the batches of indices that a pass that is gone on with leaves behind, where they are known.

    It does not hold the loader, which holds it where workers are kept: they would not end with the last reference.
    """

    def __init__(self, loader, sampler_iter, progress, resume):
        self.rank, self.world, self.in_order = loader.rank, loader.world_size, loader.in_order
        self._progress, self._sampler = progress, loader._index_sampler
        self._size, self._policy = loader.batch_size, loader.on_bad_sample
        self._of_ranks = partial(RankBatchSampler, loader.sampler, loader.batch_size, loader.drop_last)
        self._iter = sampler_iter
        self._batched, self._endless = loader._auto_collation, loader._iterable
        self._many = getattr(loader.dataset, "__getitems__", None)  # it is given what the sampler gives
        self._by_sample = self._batched and self._policy != "raise"
        self._random = [s for s in draws.chain(self._sampler) if isinstance(s, RandomSampler)]
        self._own = next((s for s in (sampler_iter, *draws.chain(self._sampler)) if stateful(s)), None)
        self._fills_up = self._own is not None and isinstance(self._sampler, RankBatchSampler)
        self._number, self.passed = 0, []
        self.times_of = None  # function: how often each sample of a Work came before in the pass
        if resume:
            self._continue(resume)
        elif self._own is not None:
            progress.sampler_state = self._own.state_dict()
        self._mixed = self._remix() if progress.done and mixable(loader) else None

    def _continue(self, resume):
        progress = self._progress
        progress.go_on(resume)
        origin = progress.origin
        for sampler in self._random:
            sampler.replay(progress.order_seed)
        if self._own is not None and progress.sampler_state is not None and not origin.without:
            self._own.load_state_dict(progress.sampler_state)
            if self._own is not self._iter:
                again = self._sampler
                self._iter = again.since(Origin(), progress.first) if self._fills_up else iter(again)
        else:
            if origin.position or origin.without:
                self._iter = self._since(origin)
            if not self._endless:
                self.passed = list(islice(self._iter, progress.position - origin.number))
            if progress.drawn:  # so that it draws now, from what it drew from then
                self._iter = chain(list(islice(self._iter, 1)), self._iter)
        self._number = progress.position

    def _since(self, origin):
        """The batches of this rank from there on; a run that has come down to one rank has torch's own sampler."""
        return self._of_ranks(self.rank, self.world).since(origin)

    def __next__(self):
        if self._mixed is not None:
            return next(self._mixed)
        while True:
            work, done = self._pull()
            if done is not None:  # else delivered before the state was saved
                return work

    def _pull(self):
        """The sampler's next batch, and what of it was delivered before; None: all."""
        indices = next(self._iter)
        if self._batched and not self._many and type(indices) is not list:  # an array, a tensor, a tuple
            indices = list(indices)
        if self._by_sample and not hasattr(indices, "__len__"):
            raise _core.ArgumentError(f"on_bad_sample={self._policy!r} needs batches that list their "
                                      f"samples; the sampler gave {indices!r}")  # fmt: skip
        number, self._number = self._number, self._number + 1
        if self._random:
            self._progress.order_seed = self._random[0].seed
        after = self._own.state_dict() if self._own is not None else None
        if self._fills_up:
            self._progress.first = self._sampler.first
        work = Work(number, indices)
        if self.times_of is not None:  # also of what was delivered: the samples after it have come once more
            work = work._replace(times=self.times_of(work))
        return work, self._progress.begun(number, size_of(indices) if self._batched else 1, after)

    def _samples(self):
        """(place, index, time) of each sample that was not delivered."""
        while True:
            try:
                work, done = self._pull()
            except StopIteration:
                return
            if done is not None:
                times = work.times or repeat(None)
                samples = zip(places_of(work, len(work.indices)), work.indices, times, strict=False)
                yield from [sample for sample in samples if sample[0][1] not in done]

    def _remix(self):
        samples = self._samples()
        while some := list(islice(samples, self._size)):
            places, indices, times = map(list, zip(*some, strict=True))
            yield Work(places[0][0], indices, places, None if None in times else times)
