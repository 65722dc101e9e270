"""Random number generators of torch: what the order of a pass is drawn from, saved so that it can be drawn again, and the
seeds of samples that are made in the caller.

A generator that was just seeded is saved as its seed; else as its state, 5 KB.
"""

import random
from contextlib import contextmanager

import numpy
import torch
from torch.utils import data
from torch.utils.data.dataloader import _InfiniteConstantSampler

from drapps.passes.order import sampler_chain, tag_of
from drapps.procpool.seeds import SampleSeeds
from drapps.torch.samplers import RandomSampler, RankBatchSampler

# Exactly these draw nothing from the global generator when they are iterated.
QUIET = (data.SequentialSampler, data.BatchSampler, data.DistributedSampler, _InfiniteConstantSampler,
         RandomSampler, RankBatchSampler, list, tuple, range)  # fmt: skip


def pack(generator):
    """A generator's state, as a seed where it was just seeded."""
    state, seed = generator.get_state(), generator.initial_seed()
    fresh = torch.Generator(device=generator.device).manual_seed(seed)
    return seed if torch.equal(fresh.get_state(), state) else state


def unpack(generator, packed):
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


def save(loader, asks=1, kept_seeds=None):
    """The generator states that the next pass will draw from; small where none is needed.

    asks: 2: the sampler is asked for an iterator before and after the base seed is drawn; 1: before.  kept_seeds: the
    base seeds of persistent workers: the one that they were started with, and the one of this pass.
    """
    quiet = all(type(sampler) in QUIET for sampler in sampler_chain(loader._index_sampler))
    datapipe = isinstance(loader.dataset, data.IterDataPipe)
    return {
        "generators": [pack(generator) for generator in generators(loader)],
        "global": None if quiet and not datapipe else torch.get_rng_state(),
        "asks": asks,
        "kept_seeds": kept_seeds,
    }


def base_seed(loader):
    """Draws a base seed as torch does."""
    return torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()


def restore(loader, packed):
    """Sets the loader's generators to saved states."""
    mine = generators(loader)
    for generator, state in zip(mine, packed, strict=False):
        unpack(generator, state)


@contextmanager
def redrawing(loader, resume):
    """Inside, a pass draws what it drew before the state was saved; outside, the global generator has not moved."""
    before, draws = torch.get_rng_state(), resume["draws"]
    restore(loader, draws["generators"])
    if draws["global"] is not None:
        torch.set_rng_state(draws["global"])
    try:
        yield resume
    finally:
        torch.set_rng_state(before)
        if "replay" in resume:  # it has what was drawn, and draws nothing
            restore(loader, draws["generators"])


@contextmanager
def preserving(loader):
    """A context after which the generators are as before."""
    before, packed = torch.get_rng_state(), [pack(generator) for generator in generators(loader)]
    try:
        yield
    finally:
        torch.set_rng_state(before)
        restore(loader, packed)


# --- samples in the caller ---


class CallerSeeds:
    """Samples that are made in the caller draw what they would draw in a worker process."""

    def __init__(self, base_seed, order):
        self._seeds, self._base_seed, self._config = SampleSeeds(), base_seed, order.config

    def set(self, place, part=0):
        """Seeds the global generators for a sample.  part: COLLATE for the batch that it is the first of."""
        number, slot = place
        self._seeds.set(self._base_seed, tag_of(self._config, number), part + slot)

    @contextmanager
    def preserving(self):
        """A context for making samples: afterwards the program's generators are as they were."""
        before = random.getstate(), numpy.random.get_state(legacy=False), torch.get_rng_state()
        try:
            yield
        finally:
            random.setstate(before[0])
            numpy.random.set_state(before[1])
            torch.set_rng_state(before[2])
