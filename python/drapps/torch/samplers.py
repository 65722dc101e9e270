"""Samplers: which samples make up which batch, and what a pass needs to know of them.

RandomSampler draws exactly what torch's does and remembers the seed, so that a saved state is one number.
RankBatchSampler gives each of several processes its part of every global batch.  pass_config() describes the samplers
of a DataLoader for the pass layer.

What the order of a pass is drawn from, torch's random number generators, is saved so that it can be drawn again
(save_draws, redrawing).  A generator that was just seeded is saved as its seed; else as its state, 5 KB.
"""

from contextlib import contextmanager
from functools import partial
from itertools import chain, cycle, islice

import torch
from torch import distributed
from torch.utils import data
from torch.utils.data.dataloader import _InfiniteConstantSampler

from drapps.passes.order import Origin, PassConfig, sampler_chain


class RandomSampler(data.RandomSampler):
    """torch's RandomSampler, which also remembers the seed that its latest pass drew."""

    seed = None  # of the latest pass; None where a generator drew it
    _next_seed = None  # seed for the next pass

    def replay_seed(self, seed):
        """Makes the next pass use this seed and draw none."""
        self._next_seed = seed

    def __iter__(self):
        seed, self._next_seed = self._next_seed, None
        if seed is None and self.generator is not None:
            self.seed = None
            yield from super().__iter__()
            return
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


def innermost(loader):
    """The sampler that decides the order: the last one of the chain."""
    return list(sampler_chain(loader._index_sampler))[-1]


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


def length_of(dataset):
    """The data set's length, None without."""
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


# --- for traces ---


def settings_of(loader):
    """The arguments that say which samples come, and in which order; plain values."""
    own = (
        loader.batch_sampler if type(loader.batch_sampler).__module__.split(".")[0] not in ("torch", "drapps") else None
    )
    return {
        "batch_size": loader.batch_size,
        "shuffle": own is None and isinstance(loader.sampler, data.RandomSampler),
        "sampler": type(own or loader.sampler).__name__,
        "drop_last": loader.drop_last,
        "in_order": bool(loader.in_order),
        "seed": loader.seed,
        "on_bad_sample": loader.on_bad_sample,
        "rank": loader.rank,
        "world": loader.world_size,
    }


def samples_of_pass(loader):
    """Samples of a whole pass of this rank; None where the sampler does not tell, or forms batches of its own."""
    if type(loader.batch_sampler) is not data.BatchSampler:
        return None
    n_samples = length_of(loader.sampler)
    return n_samples - n_samples % loader.batch_size if n_samples and loader.drop_last else n_samples


# --- what the order is drawn from ---

# Exactly these draw nothing from the global generator when they are iterated.
QUIET = (data.SequentialSampler, data.BatchSampler, data.DistributedSampler, _InfiniteConstantSampler,
         RandomSampler, RankBatchSampler, list, tuple, range)  # fmt: skip


def pack_generator(generator):
    """A generator's state, as a seed where it was just seeded."""
    state, seed = generator.get_state(), generator.initial_seed()
    fresh = torch.Generator(device=generator.device).manual_seed(seed)
    return seed if torch.equal(fresh.get_state(), state) else state


def unpack_generator(generator, packed):
    """Puts a generator into a packed state."""
    if isinstance(packed, int):
        generator.manual_seed(packed)
    else:
        generator.set_state(packed)


def generators(loader):
    """The generators that were given for the loader or its samplers, each once."""
    found = {id(g): g for part in (loader, *sampler_chain(loader._index_sampler))
             if isinstance(g := getattr(part, "generator", None), torch.Generator)}  # fmt: skip
    return list(found.values())


def save_draws(loader, asks=1, kept_seeds=None):
    """The generator states that the next pass will draw from; small where none is needed.

    asks: 2: the sampler is asked for an iterator before and after the base seed is drawn; 1: before.  kept_seeds: the
    base seeds of persistent workers: the one that they were started with, and the one of this pass.
    """
    quiet = all(type(sampler) in QUIET for sampler in sampler_chain(loader._index_sampler))
    datapipe = isinstance(loader.dataset, data.IterDataPipe)
    return {
        "generators": [pack_generator(generator) for generator in generators(loader)],
        "global": None if quiet and not datapipe else torch.get_rng_state(),
        "asks": asks,
        "kept_seeds": kept_seeds,
    }


def draw_base_seed(loader):
    """Draws a base seed as torch does."""
    return torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()


def restore_generators(loader, packed):
    """Sets the loader's generators to saved states."""
    mine = generators(loader)
    for generator, state in zip(mine, packed, strict=False):
        unpack_generator(generator, state)


@contextmanager
def redrawing(loader, resume):
    """Inside, a pass draws what it drew before the state was saved; outside, the global generator has not moved."""
    before, draws = torch.get_rng_state(), resume["draws"]
    restore_generators(loader, draws["generators"])
    if draws["global"] is not None:
        torch.set_rng_state(draws["global"])
    try:
        yield resume
    finally:
        torch.set_rng_state(before)
        if "replay" in resume:  # it has what was drawn, and draws nothing
            restore_generators(loader, draws["generators"])


@contextmanager
def preserving_generators(loader):
    """A context after which the generators are as before."""
    before, packed = torch.get_rng_state(), [pack_generator(generator) for generator in generators(loader)]
    try:
        yield
    finally:
        torch.set_rng_state(before)
        restore_generators(loader, packed)
