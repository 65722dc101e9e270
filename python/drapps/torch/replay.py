"""Passes that are made again: what is noted of one (Record), and its batches in the order in which they came (Repeat).

A batch is noted with the indices that the data set was asked for and the places that these had in the sampler's
batches, which their random numbers hang on: no sampler is needed to make it again, and no seed but the pass's own.
"""

import random
from array import array
from contextlib import contextmanager
from itertools import chain

import numpy
import torch

from drapps import _core
from drapps.procpool.seeds import SampleSeeds
from drapps.torch.order import Work, places_of, size_of


class Record:
    """The batches that a pass has delivered, in this order; 16 bytes for most samples."""

    def __init__(self, order, batched, native):
        self._facts = {"rank": order.rank, "world_size": order.world, "native": native}
        self._batched = batched
        self._batches = []  # (indices, places or the number of the sampler's batch, times)

    def add(self, work, left_out=()):
        """A batch was delivered, or lost by an error: then it fails again.  left_out: places that are not in it."""
        indices = work.indices if self._batched else [work.indices]
        places, times = places_of(work, size_of(indices)), work.times
        if left_out:
            kept = [i for i, place in enumerate(places) if place not in left_out]
            if not kept:
                return
            places, indices = [places[i] for i in kept], [indices[i] for i in kept]
            times = times and [times[i] for i in kept]
        number = places[0][0] if places else work.number
        is_whole = places == [(number, slot) for slot in range(len(places))]
        self._batches.append((_packed(indices), number if is_whole else array("I", chain.from_iterable(places)),
                              array("I", times) if times and any(times) else None))  # fmt: skip

    def as_dict(self):
        """What is noted, as plain values."""
        return {**self._facts, "batches": [_as_dict(*batch) for batch in self._batches]}


def _packed(indices):
    """In little memory, where they are plain whole numbers."""
    if type(indices) is list and all(type(index) is int for index in indices):
        try:
            return array("q", indices)
        except OverflowError:
            pass
    return indices


def _as_dict(indices, places, times):
    pairs = places if isinstance(places, int) else [list(pair) for pair in zip(places[::2], places[1::2], strict=True)]
    told = {} if times is None else {"times": times.tolist()}
    return {"indices": indices.tolist() if isinstance(indices, array) else indices, "places": pairs, **told}


class Repeat:
    """Stands for the Order of a pass: gives the Work of one that was recorded."""

    in_order, passed = True, ()

    def __init__(self, order, batched):
        self.rank, self.world = order["rank"], order["world_size"]
        self._order, self._batched = order, batched
        self._coming = iter(order["batches"])
        self._left = {_first(batch["places"]): batch for batch in order["batches"]}

    def __next__(self):
        batch = next(self._coming)
        number, places, indices = _first(batch["places"])[0], batch["places"], batch["indices"]
        times = (batch.get("times") or [0] * len(indices)) if self._order["native"] else None
        return Work(number, indices if self._batched else indices[0],
                    None if isinstance(places, int) else list(map(tuple, places)), times)  # fmt: skip

    def given(self, work):
        """The consumer has a batch."""
        self._left.pop(work.first, None)

    def rest(self):
        """The recorded pass without what was given."""
        return {**self._order, "batches": list(self._left.values())}


def _first(places):
    return (places, 0) if isinstance(places, int) else tuple(places[0])


def state_of(loader, order):
    """The state that begins to repeat a recorded pass; raises what keeps the loader from that."""
    if not isinstance(order, dict) or not {"batches", "native", "base_seed"} <= set(order):
        raise _core.ArgumentError("not a recorded pass: order() of a drapps.DataLoader with record=True gives one")
    made_with = {**order["made_with"], "world_size": loader.world_size}  # any rank may repeat what one did
    return {**loader._between(), "drapps": order["drapps"], "made_with": made_with, "epoch": order["epoch"],
            "base_seed": order["base_seed"], "_iterator_finished": False, "replay": order}  # fmt: skip


def check_way(loader, order):
    """Raises where the loader would not make a recorded pass as it was made.  With num_workers=0 it can do both."""
    native = loader._is_native() and not (loader.num_workers == 0 and not order["native"])
    if order["native"] != native:
        how = ("in Python", "natively")
        raise _core.ArgumentError(f"the pass was made {how[order['native']]}, this loader would make it "
                                  f"{how[native]}, which draws other random numbers: see explain()")  # fmt: skip


class CallerSeeds:
    """Samples that are made in the caller draw what they would draw in a worker process."""

    def __init__(self, base_seed, order):
        self._seeds, self._base_seed = SampleSeeds(), base_seed
        self._rank, self._world = order.rank, order.world

    def set(self, place, part=0):
        """For the sample that comes now.  part: COLLATE for the batch that it is the first of."""
        number, slot = place
        self._seeds.set(self._base_seed, number * self._world + self._rank, part + slot)

    @contextmanager
    def lent(self):
        """Around samples: afterwards the program's generators are as they were."""
        before = random.getstate(), numpy.random.get_state(legacy=False), torch.get_rng_state()
        try:
            yield
        finally:
            random.setstate(before[0])
            numpy.random.set_state(before[1])
            torch.set_rng_state(before[2])
