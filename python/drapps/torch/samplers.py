"""Samplers: which samples make up which batch.

RandomSampler draws exactly what torch's does and remembers the seed, so that a saved state is one number.
RankBatchSampler gives each of several processes its part of every global batch.
"""

from bisect import bisect_right
from itertools import chain, cycle, islice
from typing import NamedTuple

import torch
from torch.utils import data


class RandomSampler(data.RandomSampler):
    """torch's RandomSampler, which also knows the seed that its latest pass drew."""

    seed = None  # of the latest pass; None while a generator is given
    _replay = None  # seed for the next pass

    def replay(self, seed):
        """The next pass gives the order of that seed and draws none."""
        self._replay = seed

    def __iter__(self):
        if self.generator is not None:
            yield from super().__iter__()
            return
        seed, self._replay = self._replay, None
        if seed is None:
            seed = int(torch.empty((), dtype=torch.int64).random_().item())
        self.seed = seed
        generator = torch.Generator().manual_seed(seed)
        yield from data.RandomSampler(self.data_source, self.replacement, self._num_samples, generator)


class Origin(NamedTuple):
    """Where the batches of a pass begin in its order: not at the first sample, if another number of ranks has begun it.

    The batch of that number begins at that position; what was delivered of later positions is left out.
    """

    position: int = 0
    number: int = 0
    without: tuple = ()  # ascending

    def positions(self, counts):
        """Those of samples that are counted from here, without what is left out."""
        before = [left_out - self.position - i for i, left_out in enumerate(self.without)]  # samples before each
        return [self.position + n + bisect_right(before, n) for n in counts]


class RankBatchSampler(data.BatchSampler):
    """The part of one rank: of every batch_size * world consecutive positions, rank, rank + world, ...

    Ranks get equally many samples: positions that do not fill the last global batch are dropped (drop_last), or
    filled up to a multiple of world with the first ones of the order.
    """

    first = None  # those of the latest pass

    def __init__(self, sampler, batch_size, drop_last, rank, world):
        super().__init__(sampler, batch_size, drop_last)
        self.rank, self.world = rank, world

    def __iter__(self):
        return self.since(Origin())

    def since(self, origin, first=None):
        """The batches from there on.  first: those of the order, where the sampler begins later."""
        skip, without = origin.position, frozenset(origin.without)
        order, total = iter(self.sampler), self.batch_size * self.world
        begun = list(islice(order, self.world))
        self.first = first = first or begun
        rest = (index for i, index in enumerate(chain(begun, order)) if i >= skip and i not in without)
        while chunk := list(islice(rest, total)):
            if len(chunk) < total and self.drop_last:
                return
            chunk += islice(cycle(first), -len(chunk) % self.world)
            yield chunk[self.rank :: self.world]

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.batch_size * self.world)
        return whole + (rest > 0 and not self.drop_last)
