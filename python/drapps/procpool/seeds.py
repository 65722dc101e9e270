"""The global generators before each sample: random, numpy.random and torch, keyed by (base seed, batch, slot).

So a sample's random numbers depend neither on the worker that makes it nor on what that worker made before.
torch.initial_seed() stays what it was.  The states are filled in place where the memory is as expected, which is
checked once, before workers are forked; else random is set to the same state by its own function, torch is seeded anew,
and numpy.random (with a generator that is no MT19937) is left alone.
"""

import ctypes
import functools
import random
import sys
from contextlib import contextmanager

import numpy.random  # here, once, and not in each worker when its first sample needs it
import torch
from torch.utils.data._utils.worker import _generate_state

from drapps import _core
from drapps.passes.order import tag_of

OF_RANDOM, OF_NUMPY, OF_TORCH = 1, 2, 3  # as in py_seed.c
N_WORDS = 624
TORCH_BYTES = 5056
RANDOM_VERSION = 3
COLLATE = 1 << 32  # and a slot: for what is drawn when a batch is put together


def seed_worker(base_seed, worker, *, only_torch=False):
    """Seed as torch seeds a new worker.  only_torch: the other generators are seeded before they are used."""
    seed = base_seed + worker
    torch.default_generator.manual_seed(seed)  # torch.manual_seed takes a stack trace for each kind of accelerator
    if not only_torch:
        random.seed(seed)
        _seed_numpy(_generate_state(base_seed, worker))


def _seed_numpy(key):
    """numpy.random.seed(key), which checks its argument by array operations: 0.7 ms in a process just forked."""
    generator = numpy.random.get_bit_generator()
    address = _numpy_address(generator)
    if not address:
        numpy.random.seed(key)
        return
    _core.seed_numpy(address, tuple(key))
    numpy.random.set_bit_generator(generator)  # forgets the second number of a pair of normal ones


def _random_words(key):
    return memoryview(_core.seed_words(*key, OF_RANDOM)).cast("I").tolist()


# --- where the states are ---


@functools.lru_cache(1)
def _random_address(generator):
    """Return the address of random's index and words; 0 when they are not where CPython puts them."""
    address = id(generator) + object.__basicsize__
    version, words, _ = generator.getstate()
    if sys.implementation.name != "cpython" or version != RANDOM_VERSION:
        return 0
    if random.Random.__base__.__basicsize__ < object.__basicsize__ + 4 * (N_WORDS + 1):
        return 0
    seen = (ctypes.c_uint32 * (N_WORDS + 1)).from_address(address)
    return address if (*seen[1:], seen[0]) == words else 0


@functools.lru_cache(1)
def _numpy_address(generator):
    """Return the address of the words of numpy.random's MT19937; 0 when it has another generator."""
    if type(generator).__name__ != "MT19937":
        return 0
    address = generator.ctypes.state_address
    state = generator.state["state"]
    seen = (ctypes.c_uint32 * (N_WORDS + 1)).from_address(address)
    return address if [*seen] == [*state["key"].tolist(), state["pos"]] else 0


@functools.cache
def _knows_torch():
    """Return whether a generator of torch has the bytes that py_seed.c expects."""
    words = torch.Generator().manual_seed(5).get_state()
    return words.numel() == TORCH_BYTES and words[:32].view(torch.int64).tolist() == [5, (1 << 32) + 1, 0, 5]


class SampleSeeds:
    """Sets the generators for one sample after the other, in this process or a fork of it.

    seed: what torch.initial_seed() is to say; None: what it says.
    """

    def __init__(self, seed=None):
        self._random = _random_address(random._inst)
        torchs = torch.default_generator if seed is None else torch.Generator().manual_seed(seed)
        self._torch = torchs.get_state() if _knows_torch() else None
        self._torch_address = self._torch.data_ptr() if self._torch is not None else 0
        self._numpy_generator = numpy.random.get_bit_generator()
        self._numpy_address = _numpy_address(self._numpy_generator)

    @property
    def sets_numpy(self):
        """Whether set() seeds numpy.random, too."""
        return self._numpy_address != 0

    def set(self, base_seed, tag, slot):
        """Seed the generators for a sample."""
        _core.fill_seeds(base_seed, tag, slot, self._random, self._numpy_address, self._torch_address)
        if self._random:
            random._inst.gauss_next = None
        else:
            random.setstate((RANDOM_VERSION, (*_random_words((base_seed, tag, slot)), N_WORDS), None))
        if self._numpy_address:  # as in _seed_numpy
            numpy.random.set_bit_generator(self._numpy_generator)
        if self._torch is not None:
            torch.default_generator.set_state(self._torch)
        else:
            words = _core.seed_words(base_seed, tag, slot, OF_TORCH)
            torch.default_generator.manual_seed(int.from_bytes(words[:8], "little"))


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


SampleSeeds()  # what is found here holds in workers that are forked, and costs them time otherwise
