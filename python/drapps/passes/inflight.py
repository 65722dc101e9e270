"""Batches in flight of a native pass: what of them can be pushed, what was pushed, and what each batch that comes back
means for the progress."""

from array import array
from bisect import bisect_right
from functools import partial
from itertools import islice
from typing import NamedTuple

from drapps.passes.order import Work, places_of


class Back(NamedTuple):
    """A batch that came back."""

    freed: int  # room in the prefetch window
    work: Work
    first: object  # the place of its first sample in the sampler's batches; None: all were left out
    commit: object  # to call once the consumer has it


def _left_out(batch):
    """Positions of samples that are not in a batch."""
    skipped = [bad["position"] for bad in batch.bad if bad["action"] == "skipped"]
    there = set(batch.positions) if skipped else ()  # a replacement may have the position of one that was left out
    return [position for position in skipped if position not in there]


class Whole:
    """Batches come back as they were pushed, each under its number, without samples where all were left out."""

    def __init__(self, progress, first, position):
        self._progress, self._next, self._position = progress, first, position
        self._works = {}  # by number: what was pushed, and the position of its first sample

    def pushed(self, work):
        """The next batch; how much of the window it takes."""
        self._works[self._next] = work, self._position
        self._next += 1
        self._position += len(work.indices)
        return 1

    def delivered(self, batch):
        """A batch came back."""
        work, start = self._works.pop(batch.number)
        left_out, first = _left_out(batch), work.first
        if left_out:
            places = places_of(work, len(work.indices))
            left_out = [places[position - start] for position in left_out]
            first = next((place for place in places if place not in left_out), None)
        return Back(1, work, first, partial(self._progress.delivered_work, work, left_out))


class Mixed:
    """Samples come back in whatever batch they got ready for: each is found by its position."""

    def __init__(self, progress, first):
        self._progress, self._position = progress, first
        self._starts, self._works = [], []  # positions at which batches that were pushed begin, and what they are

    def pushed(self, work):
        """The next batch; how much of the window it takes."""
        self._starts.append(self._position)
        self._works.append(work)
        self._position += len(work.indices)
        return len(work.indices)

    def delivered(self, batch):
        """Samples came back, or were left out."""
        left_out = _left_out(batch)
        samples = [self._sample(position) for position in (*batch.positions, *left_out)]
        places, indices, times = map(list, zip(*samples, strict=True)) if samples else ([], [], [])
        work = Work(places[0][0] if places else 0, indices, places, None if None in times else times)
        commit = partial(self._progress.delivered_work, work, places[len(places) - len(left_out) :])
        return Back(len(samples), work, next(iter(places), None), commit)

    def _sample(self, position):
        """(place, index, time) of the sample at a position."""
        at = bisect_right(self._starts, position) - 1
        work, i = self._works[at], position - self._starts[at]
        place = (work.number, i) if work.places is None else work.places[i]
        return place, work.indices[i], work.times and work.times[i]


class Times:
    """How often each sample came before in a pass: for a record, and where some were delivered and are not pushed.
    The engine counts what is pushed in the same way, but does not report it.

    find: a function that finds the samples of a Work that exist (find).
    """

    def __init__(self, find, table):
        self._find = find
        self._counts = array("I", bytes(4 * (int(table.max(initial=-1)) + 1)))

    def of_work(self, work):
        """The counts of a batch that comes now; 0 for what does not exist."""
        found = self._find(work)
        times = self.of(found.ids)
        if found.slots is None:
            return times
        there = dict(zip(found.slots, times, strict=True))
        return [there.get(slot, 0) for slot in range(len(work.indices))]

    def of(self, ids):
        """The counts of samples that come now."""
        times = []
        for sample in map(int, ids):
            times.append(self._counts[sample])
            self._counts[sample] += 1
        return times


# --- indices that the data set does not have, before they reach the engine ---


class Found(NamedTuple):
    """The samples of a batch that exist."""

    ids: object  # to push
    slots: object = None  # that they are for; None: all
    bad: tuple = ()  # (index, error) of what does not exist; with the policy "raise" the batch's error alone


class Refused(NamedTuple):
    """A batch of which nothing is pushed."""

    due: int  # the number of pushed batches that must be taken before it is due
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
