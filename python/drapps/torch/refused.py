"""Indices that a data set does not have, on their way to the engine: bad samples, of which it never hears."""

import random
from typing import NamedTuple

from drapps.torch.order import places_of


class Found(NamedTuple):
    """What is there of a batch."""

    ids: object  # to push
    slots: object = None  # that they are for; None: all
    bad: tuple = ()  # (index, error) of what is not there; with the policy "raise" the batch's error alone


class Refused(NamedTuple):
    """A batch of which nothing is pushed."""

    due: int  # when so many batches that were pushed are taken
    work: object
    error: object  # None: all of it is left out


def find(ids, work, policy, base_seed):
    """The ids of a batch: one that is not there costs the batch, or is left out, or another takes its place."""
    try:
        return Found(ids(work.indices))
    except Exception as error:
        if policy == "raise":
            return Found((), (), ((None, error),))
    found, bad = {}, []
    for slot, (index, (number, first_slot)) in enumerate(zip(work.indices, places_of(work, len(work.indices)))):
        try:
            found[slot] = ids(index)
        except Exception as error:
            bad.append((index, error))
            if policy == "replace" and len(ids.table):  # by its place in the sampler's batches, wherever it is now
                found[slot] = ids(random.Random(f"{base_seed}/{number}/{first_slot}").randrange(len(ids.table)))
    return Found(list(found.values()), list(found), tuple(bad))


def places(work, slots):
    """(number, slot) of some samples of a batch."""
    return [(work.number, slot) if work.places is None else work.places[slot] for slot in slots]
