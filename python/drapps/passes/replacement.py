"""Which sample is delivered in place of a bad one."""

import random
from typing import NamedTuple

from drapps import _core
from drapps.passes.bad_samples import error_text
from drapps.passes.order import places_of

TRIES = 16  # replacements that are tried before the error is raised


def no_replacement(index, error):
    """The exception where every replacement of a sample was bad, too."""
    return _core.BadSampleError(f"sample {index!r}: {error_text(error)}; found no sample to take its place")


def replacements(base_seed, number, slot, index, others, length):
    """Indices that may replace a bad sample, the same in every run with that seed."""
    rng, counted = random.Random(f"{base_seed}/{number}/{slot}"), hasattr(index, "__index__") and length
    for _ in range(TRIES):
        other = rng.randrange(length) if counted else rng.choice(others)
        if other != index:
            yield other


class CarefulFetcher:
    """Gets samples one by one, so that one that fails does not take its batch with it.

    before: called with the place of each sample before it is made, or None.
    """

    def __init__(self, dataset, bad, base_seed, length, before=None):
        self._dataset, self._bad, self._base_seed, self._length = dataset, bad, base_seed, length
        self._before = before
        self.left_out = []  # places of the last batch
        self._many = getattr(dataset, "__getitems__", None)

    def samples(self, places, indices):
        """The samples of a batch that could be made, or their replacements; places: (batch, slot) of each."""
        self.left_out = []
        if self._many and self._before is None:
            try:
                return self._many(indices)
            except Exception:  # one by one then
                pass
        return self._one_by_one(places, indices)

    def _one_by_one(self, places, indices):
        found, first = [], None
        for place, index in zip(places, indices, strict=True):
            try:
                found.append(self._get(place, index))
            except Exception as error:
                self._bad.report(index, error)
                if self._bad.policy == "replace":
                    found.append(self._replacement(place, index, indices, error))
                    continue
                self.left_out.append(place)
                first = first or error
                if self._bad.equal and not found and place == places[-1]:
                    self.left_out.remove(places[0])
                    found.append(self._replacement(places[0], indices[0], indices, first))
        return found

    def _get(self, place, index):
        if self._before is not None:
            self._before(place)
        return self._many([index])[0] if self._many else self._dataset[index]

    def _replacement(self, place, index, others, error):
        for other in replacements(self._base_seed, *place, index, others, self._length):
            try:
                return self._get(place, other)
            except Exception:
                continue
        raise no_replacement(index, error) from error


# --- indices that the data set does not have, before they reach the engine ---


class Found(NamedTuple):
    """The samples of a batch that exist."""

    ids: object  # to push
    slots: object = None  # that they are for; None: all
    bad: tuple = ()  # (index, error) of what does not exist; with the policy "raise" the batch's error alone


class Refused(NamedTuple):
    """A batch of which nothing is pushed."""

    due: int  # when so many batches that were pushed are taken
    work: object
    error: object  # None: all of it is left out


def find(ids, work, policy, base_seed):
    """The ids of a batch: a missing index costs the batch, is left out, or is replaced."""
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


def places_in(work, slots):
    """(number, slot) of some samples of a batch."""
    return [(work.number, slot) if work.places is None else work.places[slot] for slot in slots]
