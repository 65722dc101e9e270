"""Bad samples of Python data sets: what happens when dataset[index] raises."""

import logging
import random

from torch._utils import ExceptionWrapper

from drapps import _core
from drapps.outcomes import MAX_BAD

log = logging.getLogger("drapps")

POLICIES = ("raise", "skip", "replace")
TRIES = 16  # replacements that are tried before the error is raised


class BadSamples:
    """Counts and reports the bad samples of a pass; more than `most` of them (None: MAX_BAD) are an error."""

    def __init__(self, policy, most, counts):
        self.policy, self._most, self._counts = policy, MAX_BAD if most is None else most, counts
        self._n = 0
        self.tell = None  # writes it into a trace, too

    def report(self, index, error):
        """A sample was left out or replaced."""
        self._n += 1
        self._counts["bad_samples"] += 1
        action, text = {"skip": "skipped", "replace": "replaced"}[self.policy], _text(error)
        log.warning("bad sample %r (%s): %s", index, action, text)
        if self.tell is not None:
            name = {"id": index} if isinstance(index, int) else {"key": str(index)}
            self.tell(**name, error=text, action=action)
        if self._n > self._most:
            raise _core.BadSampleError(
                f"{self._n} bad samples, allowed are {self._most}; the last: sample {index!r}: {text}"
            )


def _text(error):
    """An exception, or torch's wrapper of one from another process, in one line."""
    if isinstance(error, ExceptionWrapper):
        return error.exc_msg.strip().splitlines()[-1]
    return f"{type(error).__name__}: {error}"


def stand_ins(base_seed, number, slot, index, others, length):
    """Indices that may take a bad sample's place, the same in every run with that seed."""
    rng = random.Random(f"{base_seed}/{number}/{slot}")
    for _ in range(TRIES):
        other = rng.randrange(length) if isinstance(index, int) and length else rng.choice(others)
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
        found = (self._sample(place, index, indices) for place, index in zip(places, indices, strict=True))
        return [sample for got in found for sample in got]

    def _get(self, place, index):
        if self._before is not None:
            self._before(place)
        return self._many([index])[0] if self._many else self._dataset[index]

    def _sample(self, place, index, others):
        """[sample], or [] when it is left out."""
        try:
            return [self._get(place, index)]
        except Exception as error:
            self._bad.report(index, error)
            if self._bad.policy != "skip":
                return [self._stand_in(place, index, others, error)]
            self.left_out.append(place)
            return []

    def _stand_in(self, place, index, others, error):
        for other in stand_ins(self._base_seed, *place, index, others, self._length):
            try:
                return self._get(place, other)
            except Exception:
                continue
        raise error
