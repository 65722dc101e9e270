"""Which sample is delivered in place of a bad one: one rule for loaders of every kind.

The rule is the C function dr__replacement (src/exec/order.c).  Its key is (seed, epoch, id, occurrence) of the bad sample
and the number of the attempt; it chooses among n candidates.  Attempts go on until a sample is good, 16 times at most.
The key is formed so:

| loader | seed | epoch | id | occurrence | candidates |
|---|---|---|---|---|---|
| native, chain | the loader's | the loader's | of the sample | in the epoch's order | the data set |
| torch's DataLoader | 0 | the pass's base seed | native_id(index) | times the index came before in the pass | the data set |

- A batch of which all samples are left out, where ranks need equal batches, gets a replacement of its first sample; the
  occurrence is 0.
- An index that the data set does not have is its own id, with the occurrence 0.  A native pass chooses its replacement
  before it is pushed; if that one is bad, the engine replaces it by its own key.
- An index that is no int has the id (batch number << 32) + slot; candidates are the indices of its batch.
"""

import operator
from collections import Counter
from itertools import islice
from typing import NamedTuple

from drapps import _core
from drapps.passes.bad_samples import error_text
from drapps.passes.order import places_of

ATTEMPTS = 16  # as DR__MAX_REPLACE
MASK = (1 << 64) - 1


class Replacements:
    """Chooses the replacements of one pass over a data set that is asked for indices.

    length: of the data set, or None.  native_id: a function from an index, 0 or above, to the id that the sample has
    natively; None: the index.
    """

    def __init__(self, base_seed, length, native_id=None):
        self._base_seed, self._length, self._native_id = base_seed & MASK, length, native_id

    def of(self, index, place, others, occurrence=0):
        """An iterator of the indices to try.  place: (batch, slot) of the bad sample; others: indices of its batch."""
        number = self._number(index)
        if number is None or not self._length:
            key, candidates = ((place[0] << 32) + place[1]) & MASK, others
        else:
            key, candidates = number, range(self._length)
        for attempt in range(ATTEMPTS):
            yield candidates[_core.replacement(0, self._base_seed, key, occurrence, attempt, len(candidates))]

    def _number(self, index):
        """The id of a sample; None: the index is no int."""
        try:
            index = operator.index(index)
        except TypeError:
            return None
        if not is_inside(index, self._length or 0):
            return index & MASK
        index %= self._length
        return index if self._native_id is None else self._native_id(index)


def is_inside(index, length):
    """Whether a sequence of that length has the index."""
    return -length <= index < length


class Occurrences:
    """Counts how often each index of a data set came before in a pass."""

    def __init__(self, length, batched):
        self._length, self._batched, self._counts = length or 0, batched, Counter()

    def of_work(self, work):
        """The counts of a batch that comes now; 0 for what the data set does not have."""
        return [self._count(index) for index in (work.indices if self._batched else [work.indices])]

    def _count(self, index):
        if not hasattr(index, "__index__") or not is_inside(operator.index(index), self._length):
            return 0
        index = operator.index(index) % self._length
        self._counts[index] += 1
        return self._counts[index] - 1


def no_replacement(index, error):
    """The exception where every replacement of a sample was bad, too."""
    return _core.BadSampleError(f"sample {index!r}: {error_text(error)}; found no sample to take its place")


class CarefulFetcher:
    """Gets samples one by one, so that one that fails does not take its batch with it.

    before: called with the place of each sample before it is made, or None.
    """

    def __init__(self, dataset, bad, replacements, before=None):
        self._dataset, self._bad, self._replacements, self._before = dataset, bad, replacements, before
        self.left_out = []  # places of the last batch
        self._many = getattr(dataset, "__getitems__", None)

    def samples(self, places, indices, times=None):
        """The samples of a batch that could be made, or their replacements.  places: (batch, slot) of each; times: how
        often each came before in the pass, or None: never."""
        self.left_out = []
        if self._many and self._before is None:
            try:
                return self._many(indices)
            except Exception:  # one by one then
                pass
        return self._one_by_one(places, indices, times or [0] * len(indices))

    def _one_by_one(self, places, indices, times):
        found, first = [], None
        for place, index, occurrence in zip(places, indices, times, strict=True):
            try:
                found.append(self._get(place, index))
            except Exception as error:
                self._bad.report(index, error)
                if self._bad.policy == "replace":
                    found.append(self._replacement(place, index, indices, error, occurrence))
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

    def _replacement(self, place, index, others, error, occurrence=0):
        for other in self._replacements.of(index, place, others, occurrence):
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


def find(ids, work, policy, replacements):
    """The ids of a batch: a missing index costs the batch, is left out, or is replaced."""
    try:
        return Found(ids(work.indices))
    except Exception as error:
        if policy == "raise":
            return Found((), (), ((None, error),))
    found, bad = {}, []
    for slot, (index, place) in enumerate(zip(work.indices, places_of(work, len(work.indices)))):
        try:
            found[slot] = ids(index)
        except Exception as error:
            bad.append((index, error))
            if policy == "replace" and len(ids.table):
                candidates = replacements.of(index, place, work.indices)
                known = (one for one in (_id_of(ids, other) for other in candidates) if one is not None)
                found.update((slot, one) for one in islice(known, 1))
    return Found(list(found.values()), list(found), tuple(bad))


def _id_of(ids, index):
    """The id of an index; None: the data set does not have it."""
    try:
        return ids(index)
    except Exception:
        return None


def places_in(work, slots):
    """(number, slot) of some samples of a batch."""
    return [(work.number, slot) if work.places is None else work.places[slot] for slot in slots]
