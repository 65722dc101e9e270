"""Samplers: which samples make up which batch.

RandomSampler draws exactly what torch's does and remembers the seed, so that a saved state is one number.
RankBatchSampler gives each of several processes its part of every global batch.  pass_config() describes the samplers of
a DataLoader for the pass layer.
"""

from functools import partial
from itertools import chain, cycle, islice

import torch
from torch import distributed
from torch.utils import data

from drapps.passes.order import Origin, PassConfig, sampler_chain


class RandomSampler(data.RandomSampler):
    """torch's RandomSampler, which also remembers the seed that its latest pass drew."""

    seed = None  # of the latest pass; None while a generator is given
    _next_seed = None  # seed for the next pass

    def replay_seed(self, seed):
        """Makes the next pass use this seed and draw none."""
        self._next_seed = seed

    def __iter__(self):
        if self.generator is not None:
            yield from super().__iter__()
            return
        seed, self._next_seed = self._next_seed, None
        if seed is None:
            seed = int(torch.empty((), dtype=torch.int64).random_().item())
        self.seed = seed
        generator = torch.Generator().manual_seed(seed)
        yield from data.RandomSampler(self.data_source, self.replacement, self._num_samples, generator)


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
        return self.batches_since(Origin())

    def batches_since(self, origin, first=None):
        """The batches from an origin on.  first: the first samples of the order, where the sampler begins later."""
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


# --- what a pass needs to know of a DataLoader ---


def pass_config(loader):
    """The PassConfig of a DataLoader."""
    ranks = partial(RankBatchSampler, loader.sampler, loader.batch_size, loader.drop_last)
    rank, world = loader.rank, loader.world_size
    return PassConfig(
        loader._index_sampler,
        lambda origin: ranks(rank, world).batches_since(origin),  # also where a run has come down to one rank
        rank,
        world,
        in_order=loader.in_order,
        batch_size=loader.batch_size,
        batched=loader._auto_collation,
        endless=loader._iterable,
        takes_lists=bool(getattr(loader.dataset, "__getitems__", None)),
        mixable=mixable(loader),
        on_bad_sample=loader.on_bad_sample,
    )


def mixable(loader):
    """Whether samples may go to other batches than the sampler put them in: torch's own plain batches."""
    plain = loader._auto_collation and type(loader.batch_sampler) in (data.BatchSampler, RankBatchSampler)
    return plain and not getattr(loader.dataset, "__getitems__", None)


def has_ranks(loader):
    """Whether other processes make their steps together with this one, and so need as many batches."""
    samplers = sampler_chain(loader._index_sampler)
    if loader.world_size > 1 or any(isinstance(s, data.DistributedSampler) and s.num_replicas > 1 for s in samplers):
        return True
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def native_id_of(dataset):
    """A function from an index to the id that the sample has in the engine: that of the data set below a Subset.  None:
    the index."""
    if type(dataset) is not data.Subset:
        return None

    def native_id(index):
        inner = dataset
        while type(inner) is data.Subset:
            index, inner = int(inner.indices[index]), inner.dataset
        return index

    return native_id
