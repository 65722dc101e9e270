"""Replay: a pass is recorded (Record), and its batches are made again in the order in which they came (Repeat).

A batch is recorded with the indices that the data set was asked for and the places that these had in the sampler's
batches, which key their random numbers: making it again needs no sampler, and no seed but that of the pass.
"""

from array import array
from itertools import chain

from drapps import _core
from drapps.passes.order import PassConfig, Work, places_of, size_of


class Record:
    """The batches that a pass has delivered, in this order.  Most samples take 16 bytes."""

    def __init__(self, order, batched, native):
        self._facts = {"rank": order.config.rank, "world_size": order.config.world_size, "native": native}
        self._batched = batched
        self._batches = []  # (indices, places or the number of the sampler's batch, times)

    def add(self, work, left_out=()):
        """Adds a batch that was delivered, or lost by an error: a replay fails again.  left_out:
        places that are not in it."""
        indices = work.indices if self._batched else [work.indices]
        places, times = places_of(work, size_of(indices)), work.times if self._facts["native"] else None
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
        """The record as plain values."""
        return {**self._facts, "batches": [_as_dict(*batch) for batch in self._batches]}


def _packed(indices):
    """The indices in an array, where they are plain ints."""
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
    """The Order of a pass that repeats a recorded one."""

    passed = ()

    def __init__(self, order, batched):
        self.config = PassConfig(None, None, order["rank"], order["world_size"])
        self._order, self._batched = order, batched
        self._coming = iter(order["batches"])
        self._left = {_first(batch["places"]): batch for batch in order["batches"]}

    def __next__(self):
        batch = next(self._coming)
        number, places, indices = _first(batch["places"])[0], batch["places"], batch["indices"]
        times = (batch.get("times") or [0] * len(indices)) if self._order["native"] else None
        return Work(number, indices if self._batched else indices[0],
                    None if isinstance(places, int) else list(map(tuple, places)), times)  # fmt: skip

    def delivered(self, work):
        """A batch is with the consumer."""
        self._left.pop(work.first, None)

    def rest(self):
        """The recorded pass without what was delivered."""
        return {**self._order, "batches": list(self._left.values())}


def _first(places):
    return (places, 0) if isinstance(places, int) else tuple(places[0])


def state_of(order, between, world_size):
    """The state that begins to replay a recorded pass.  between: the loader's state between two passes."""
    if not isinstance(order, dict) or not {"batches", "native", "base_seed"} <= set(order):
        raise _core.ArgumentError("not a recorded pass: order() of a drapps.DataLoader with record=True gives one")
    made_with = {**order["made_with"], "world_size": world_size}  # any rank may repeat what one did
    return {**between, "drapps": order["drapps"], "made_with": made_with, "epoch": order["epoch"],
            "base_seed": order["base_seed"], "_iterator_finished": False, "replay": order}  # fmt: skip


def check_native(order, native):
    """Raises where the loader would not make a recorded pass as it was made.  native: the engine would make it."""
    if order["native"] != native:
        how = ("in Python", "natively")
        raise _core.ArgumentError(f"the pass was made {how[order['native']]}, this loader would make it "
                                  f"{how[native]}, which draws other random numbers: see explain()")  # fmt: skip
