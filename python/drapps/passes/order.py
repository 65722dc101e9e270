"""Order: the batches of indices of one pass, numbered as the sampler gave them.

A pass that continues another begins after what was delivered.  With in_order=False, that leaves gaps: their samples are
put into new batches, each sample under the number and slot that it had first, because these key its randomness.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

from drapps import _core


class Work(NamedTuple):
    """One batch to make."""

    number: int
    indices: object  # a list of indices; without batches (batch_size=None), one index
    places: list | None = None  # (number, slot) of each sample; None: (number, 0), (number, 1), ...
    times: list | None = None  # how often each sample came before in the pass, where that is counted

    @property
    def first(self):
        """The place of its first sample, which no other batch has."""
        return self.places[0] if self.places else (self.number, 0)


class Origin(NamedTuple):
    """Where the batches of a pass begin in its order: beyond the first sample if another number of ranks began it.

    Batch `number` begins at `position`; `without` lists later positions that were delivered already.
    """

    position: int = 0
    number: int = 0
    without: tuple = ()  # ascending

    def positions(self, counts):
        """The positions of the n-th remaining samples, for each n in counts."""
        before = [left_out - self.position - i for i, left_out in enumerate(self.without)]  # samples before each
        return [self.position + n + bisect_right(before, n) for n in counts]


@dataclass(frozen=True)
class PassConfig:
    """What a pass needs to know of its loader.  It does not hold the loader: workers that a loader keeps would not end
    with its last reference."""

    sampler: Any  # gives batches of indices, or indices where batched is False
    since: Any  # function: an iterator of this rank's batches from an Origin on
    rank: int = 0
    world_size: int = 1
    in_order: bool = True
    batch_size: int | None = None
    batched: bool = True
    endless: bool = False  # the sampler has no end: the data set is iterable
    takes_lists: bool = False  # the data set has __getitems__, which gets what the sampler gives
    mixable: bool = False  # samples may go to other batches than the sampler put them in
    on_bad_sample: str = "raise"


def places_of(work, n):
    """(number, slot) of each of its n samples."""
    return work.places or [(work.number, slot) for slot in range(n)]


def tag_of(config, number):
    """The number of a rank's batch among those of all ranks; it keys the random numbers of its samples."""
    return number * config.world_size + config.rank


def stateful(thing):
    """Whether it has state_dict and load_state_dict."""
    return hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")


def size_of(indices):
    """Samples of a batch; what only __getitems__ understands, as a slice, counts as one."""
    return len(indices) if hasattr(indices, "__len__") else 1


def sampler_chain(sampler):
    """A sampler and those that it takes its indices from."""
    while sampler is not None:
        yield sampler
        inner = getattr(sampler, "sampler", None)
        sampler = getattr(sampler, "batch_sampler", None) if inner is None else inner


class Order:
    """Gives Work until the sampler ends, and notes in the pass's progress what was drawn.

    passed: the batches of indices that a resumed pass skips, where they are known.
    times_of: function: how often each sample of a Work came before in the pass; None: not counted.
    """

    def __init__(self, config, sampler_iter, progress, resume):
        self.config, self.passed, self.times_of = config, [], None
        self._progress, self._iter, self._number = progress, sampler_iter, 0
        samplers = list(sampler_chain(config.sampler))
        self._seeded = [sampler for sampler in samplers if hasattr(sampler, "replay_seed")]  # by one seed a pass
        self._own = next((s for s in (sampler_iter, *samplers) if stateful(s)), None)
        self._fills_up = self._own is not None and hasattr(config.sampler, "batches_since")
        if resume:
            self._continue(resume)
        elif self._own is not None:
            progress.delivered.sampler_state = self._own.state_dict()
        self._mixed = self._remix() if progress.delivered.done and config.mixable else None

    def _continue(self, resume):
        progress = self._progress
        progress.restore(resume)
        origin = progress.delivered.origin
        for sampler in self._seeded:
            sampler.replay_seed(progress.drawn.order_seed)
        if self._own is not None and progress.delivered.sampler_state is not None and not origin.without:
            self._own.load_state_dict(progress.delivered.sampler_state)
            if self._own is not self._iter:
                again = self.config.sampler
                self._iter = again.batches_since(Origin(), progress.drawn.first) if self._fills_up else iter(again)
        else:
            if origin.position or origin.without:
                self._iter = self.config.since(origin)
            if not self.config.endless:
                self.passed = list(islice(self._iter, progress.delivered.position - origin.number))
            if progress.drawn.begun:  # it draws now, from the generator state that it drew from then
                self._iter = chain(list(islice(self._iter, 1)), self._iter)
        self._number = progress.delivered.position

    def __next__(self):
        if self._mixed is not None:
            return next(self._mixed)
        while True:
            work, done = self._pull()
            if done is not None:  # else delivered before the state was saved
                return work

    def _pull(self):
        """The sampler's next batch, and the slots of it that were delivered before; None: all."""
        indices, config = next(self._iter), self.config
        if config.batched and not config.takes_lists and type(indices) is not list:  # an array, a tensor, a tuple
            indices = list(indices)
        if config.batched and config.on_bad_sample != "raise" and not hasattr(indices, "__len__"):
            raise _core.ArgumentError(f"on_bad_sample={config.on_bad_sample!r} needs batches that list their "
                                      f"samples; the sampler gave {indices!r}")  # fmt: skip
        number, self._number = self._number, self._number + 1
        if self._seeded:
            self._progress.drawn.order_seed = self._seeded[0].seed
        after = self._own.state_dict() if self._own is not None else None
        if self._fills_up:
            self._progress.drawn.first = config.sampler.first
        work = Work(number, indices)
        if self.times_of is not None:  # also of what was delivered: the samples after it have come once more
            work = work._replace(times=self.times_of(work))
        return work, self._progress.begun(number, size_of(indices) if config.batched else 1, after)

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
        while some := list(islice(samples, self.config.batch_size)):
            places, indices, times = map(list, zip(*some, strict=True))
            yield Work(places[0][0], indices, places, None if None in times else times)
