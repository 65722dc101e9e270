"""Bad samples of Python data sets: what happens when dataset[index] raises."""

import random

from torch import distributed
from torch._utils import ExceptionWrapper
from torch.utils.data import DistributedSampler

from drapps import _core
from drapps.badlist import warn_of
from drapps.outcomes import MAX_BAD
from drapps.torch import draws

POLICIES = ("raise", "skip", "replace")
MOST_NAMED = 8  # samples in a note
TRIES = 16  # replacements that are tried before the error is raised


def has_ranks(loader):
    """Other processes make their steps together with this one, and so need as many batches."""
    samplers = draws.chain(loader._index_sampler)
    if loader.world_size > 1 or any(isinstance(s, DistributedSampler) and s.num_replicas > 1 for s in samplers):
        return True
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


class BadSamples:
    """Counts and reports the bad samples of a pass; more than max_bad of them (None: MAX_BAD) are an error.

    equal: no batch may be lost by it: one of which nothing is left gets another sample.
    """

    def __init__(self, loader, epoch):
        self.policy, self._most = loader.on_bad_sample, MAX_BAD if loader.max_bad is None else loader.max_bad
        self.equal = self.policy == "skip" and has_ranks(loader)
        self._counts, self._list, self._epoch = loader._counts, loader._bad_list, epoch
        self._n = 0
        self.tell = None  # writes it into a trace, too

    @property
    def too_many(self):
        """There is no going on."""
        return self._n > self._most

    def report(self, index, error):
        """A sample was left out or replaced."""
        self._n += 1
        self._counts["bad_samples"] += 1
        action, text = {"skip": "skipped", "replace": "replaced"}[self.policy], error_text(error)
        named = self._list.text(index)
        warn_of(named, action, text)
        self._list.add(index, text, self._epoch)
        if self.tell is not None:
            name = {"id": index} if isinstance(index, int) else {"key": str(index)}
            self.tell(**name, error=text, action=action)
        if self.too_many:
            raise _core.BadSampleError(
                f"{self._n} bad samples, allowed are {self._most}; the last: sample {named}: {text}"
            )


def error_text(error):
    """An exception, or torch's wrapper of one from another process, in one line."""
    if isinstance(error, ExceptionWrapper):
        return error.exc_msg.strip().splitlines()[-1]
    return f"{type(error).__name__}: {error}"


def indices_of(asked_for, batched):
    """A list of what a data set was asked for at once; batches may be named by other things than lists, as slices."""
    return list(asked_for) if batched and isinstance(asked_for, (list, tuple)) else [asked_for]


def note_samples(error, indices, bad_list):
    """Says on an exception which sample it came of, or which of several, where the data set was asked for all at once."""
    if len(indices) == 1:
        note = f"in sample {bad_list.text(indices[0])}"
    else:
        more = f" and {len(indices) - MOST_NAMED} more" if len(indices) > MOST_NAMED else ""
        note = f"in one of the samples {', '.join(map(repr, indices[:MOST_NAMED]))}{more}"
    if note not in getattr(error, "__notes__", ()):  # the same exception may be raised again
        error.add_note(note)


def no_stand_in(index, error):
    """The exception where nothing was found to take a bad sample's place."""
    return _core.BadSampleError(f"sample {index!r}: {error_text(error)}; found no sample to take its place")


def stand_ins(base_seed, number, slot, index, others, length):
    """Indices that may take a bad sample's place, the same in every run with that seed."""
    rng, counted = random.Random(f"{base_seed}/{number}/{slot}"), hasattr(index, "__index__") and length
    for _ in range(TRIES):
        other = rng.randrange(length) if counted else rng.choice(others)
        if other != index:
            yield other


class CarefulFetcher:
    """Gets samples one by one, so that one that fails does not take its batch with it.

    before: called with the place of each that is made; None: nothing is.
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
                    found.append(self._stand_in(place, index, indices, error))
                    continue
                self.left_out.append(place)
                first = first or error
                if self._bad.equal and not found and place == places[-1]:
                    self.left_out.remove(places[0])
                    found.append(self._stand_in(places[0], indices[0], indices, first))
        return found

    def _get(self, place, index):
        if self._before is not None:
            self._before(place)
        return self._many([index])[0] if self._many else self._dataset[index]

    def _stand_in(self, place, index, others, error):
        for other in stand_ins(self._base_seed, *place, index, others, self._length):
            try:
                return self._get(place, other)
            except Exception:
                continue
        raise no_stand_in(index, error) from error
