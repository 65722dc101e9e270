"""What the order of a pass is drawn from, kept so that the pass can be drawn again.

A generator that was just seeded is kept as its seed; else as its state, 5 KB.
"""

from contextlib import contextmanager

import torch
from torch.utils import data
from torch.utils.data.dataloader import _InfiniteConstantSampler

from drapps.torch.samplers import RandomSampler, RankBatchSampler

# Exactly these draw nothing from the global generator when they are iterated.
QUIET = (data.SequentialSampler, data.BatchSampler, data.DistributedSampler, _InfiniteConstantSampler,
         RandomSampler, RankBatchSampler, list, tuple, range)  # fmt: skip


def chain(sampler):
    """A sampler and those that it takes its indices from."""
    while sampler is not None:
        yield sampler
        inner = getattr(sampler, "sampler", None)
        sampler = getattr(sampler, "batch_sampler", None) if inner is None else inner


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
    found = {id(g): g for part in (loader, *chain(loader._index_sampler))
             if isinstance(g := getattr(part, "generator", None), torch.Generator)}  # fmt: skip
    return list(found.values())


def take(loader, asks=1, kept_seeds=None):
    """What the pass that begins now will draw from, and how; small where nothing is needed.

    asks: 2: the sampler is asked for an iterator before and after the base seed is drawn; 1: before.  kept_seeds: of
    workers that are kept from the last pass: the base seeds that they were started with and that this pass has.
    """
    quiet = all(type(sampler) in QUIET for sampler in chain(loader._index_sampler))
    datapipe = isinstance(loader.dataset, data.IterDataPipe)
    return {
        "generators": [pack(generator) for generator in generators(loader)],
        "global": None if quiet and not datapipe else torch.get_rng_state(),
        "asks": asks,
        "kept_seeds": kept_seeds,
    }


def base_seed(loader):
    """Drawn as torch draws it."""
    return torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()


def put(loader, packed):
    """Sets the loader's generators to what they were."""
    mine = generators(loader)
    for generator, state in zip(mine, packed, strict=False):
        unpack(generator, state)


@contextmanager
def again(loader, resume):
    """Inside, a pass draws what it drew before the state was saved; outside, the global generator has not moved."""
    before, draws = torch.get_rng_state(), resume["draws"]
    put(loader, draws["generators"])
    if draws["global"] is not None:
        torch.set_rng_state(draws["global"])
    try:
        yield resume
    finally:
        torch.set_rng_state(before)
        if "replay" in resume:  # it has what was drawn, and draws nothing
            put(loader, draws["generators"])


@contextmanager
def unmoved(loader):
    """What is drawn inside counts for nothing."""
    before, packed = torch.get_rng_state(), [pack(generator) for generator in generators(loader)]
    try:
        yield
    finally:
        torch.set_rng_state(before)
        put(loader, packed)
