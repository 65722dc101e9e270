"""Ledger: what each sample of a Python data set costs, so that slow samples are known before they run.

The costs, the file and the predictions are in C (drapps/ledger.h), where native loaders use them, too.  Here is what needs
Python: which data set a ledger belongs to, and the hints of its samples (the size of a file, or the data set's own
cost_hint(index)), by which samples that were never seen are predicted.  The ledger only decides what starts first: a wrong
or missing entry costs time, never a sample.
"""

import hashlib
import os
import time
from operator import length_hint

import numpy

from drapps import _core

SLOW_HINT_NS, HINTS = 100_000, 16  # a hint that mostly takes so long, after so many, is not asked again
GUESSES, GUESS_S = 64, 0.002  # so many hints and some are looked at before anything was seen, in no more time


class Ledger:
    """Costs of the samples of one data set.

    >>> ledger = Ledger(dataset, folder=None)
    >>> ledger.note([0, 1, 2], [1e6, 1e6, 20e6])
    >>> ledger.predict([2, 0, 3]).tolist()
    [20000000.0, 1000000.0, 0.0]
    """

    def __init__(self, dataset, folder="auto"):
        self.hint = hint_of(dataset)
        self.hints = self.slow_hints = 0
        self.n_samples = len(dataset)
        self.path = None
        if folder is not None:
            self.path = os.path.join(_cache_folder() if folder == "auto" else folder, f"{fingerprint(dataset)}.ledger")
        self._core = _core.open_ledger(self.path, self.n_samples)
        if not self.unit_ns:
            self._guess()

    def predict(self, indices):
        """Returns the nanoseconds that each sample will take; 0 where nothing is known."""
        costs = numpy.zeros(len(indices), numpy.float32)
        self._core.predict(numpy.asarray(indices, numpy.uint64), costs)
        unknown = numpy.flatnonzero(costs == 0)
        if unknown.size and self.hint and self._core.estimates_by() != "nothing":
            costs[unknown] = self._estimate([indices[i] for i in unknown])
        return costs

    def _estimate(self, indices):
        costs = numpy.zeros(len(indices), numpy.float32)
        self._core.estimate(self._hints_of(indices), costs)
        return costs

    def _guess(self):
        """Takes hints of samples all over the data set, unless that takes too long or one of them fails."""
        hints, end = [], time.perf_counter() + GUESS_S
        for index in range(0, self.n_samples, max(1, self.n_samples // GUESSES)):
            hint = self._hint_of(index)
            if hint is None or time.perf_counter() > end:
                return
            hints.append(hint)
        self._core.guess(numpy.array(hints, numpy.float64))

    @property
    def is_guessing(self):
        """Whether costs are told by hints alone, because too few were seen."""
        return self._core.estimates_by() == "guess"

    @property
    def is_estimating(self):
        """Whether hints explain the costs that were seen."""
        return self._core.estimates_by() == "model"

    def _hints_of(self, indices):
        """The hints of samples as an array; NaN where there is none."""
        hints = (self._hint_of(index) for index in indices)
        return numpy.array([numpy.nan if hint is None else hint for hint in hints], numpy.float64)

    def _hint_of(self, index):
        """Returns what is known of a sample beforehand; a hint that fails or is slow is not asked again."""
        if self.hint is None:
            return None
        began = time.perf_counter_ns()
        found = None
        try:
            found = float(self.hint(index))
        except Exception:
            self._drop_hint()
        self.hints += 1
        self.slow_hints += time.perf_counter_ns() - began > SLOW_HINT_NS
        if self.hints >= HINTS and 2 * self.slow_hints > self.hints:
            self._drop_hint()
        return found

    def _drop_hint(self):
        self.hint = None
        self._core.guess(b"")

    def note(self, indices, ns):
        """Remembers what samples cost."""
        hints = self._hints_of(indices) if self.hint else None
        self._core.note(numpy.asarray(indices, numpy.uint64), numpy.asarray(ns, numpy.float64), hints)

    @property
    def units(self):
        """Remembered costs in units of the typical one; 0: never seen."""
        return numpy.frombuffer(self._core.units(), numpy.float32)

    @property
    def unit_ns(self):
        """Nanoseconds of a unit; 0: nothing was seen."""
        return self._core.look()[1]

    @property
    def median_ns(self):
        """Of what was seen or is guessed; 0: nothing."""
        return self._core.look()[2]

    @property
    def spread(self):
        """(nanoseconds of the mean, of the longest) of what was seen or is guessed; 0, 0: nothing."""
        return self._core.look()[3:5]

    @property
    def is_telling(self):
        """Whether costs differ enough for a ledger to be of use."""
        return self._core.look()[5]

    def save(self):
        """Writes the ledger, with what another process may have learnt of samples that this one has not seen."""
        if not self._core.save():
            self.path = None  # a folder that cannot be written, a full disk: go on without


def hint_of(dataset):
    """A function from an index to a number that may tell the cost beforehand, or None."""
    if callable(getattr(dataset, "cost_hint", None)):
        return dataset.cost_hint
    if _is_subset(dataset):
        inner = hint_of(dataset.dataset)
        return inner and (lambda i: inner(dataset.indices[i]))
    files = files_of(dataset)
    return files and (lambda i: _file_size(files(i)))


def files_of(dataset):
    """A function from an index to the path of the sample's file, or None."""
    if _is_subset(dataset):
        inner = files_of(dataset.dataset)
        return inner and (lambda i: inner(dataset.indices[i]))
    samples = getattr(dataset, "samples", None)
    if _are_files(samples) and len(samples) == length_hint(dataset, -1):
        return lambda i: samples[i][0]
    paths = _paths_of(dataset)
    return paths and (lambda i: os.fspath(paths[i]))


def _is_subset(dataset):
    """torch's Subset, told by its name, because torch is not imported here."""
    return type(dataset).__module__ == "torch.utils.data.dataset" and type(dataset).__name__ == "Subset"


def _are_files(samples):
    """A list of (path, ...), as torchvision's folders have it."""
    return isinstance(samples, list) and bool(samples) and isinstance(samples[0], tuple) and isinstance(samples[0][0], str)


def _paths_of(dataset):
    """The first attribute that is a list of files, one for each sample; None where there is none."""
    for value in getattr(dataset, "__dict__", {}).values():
        if type(value) in (list, tuple) and value and len(value) == length_hint(dataset, -1):
            if isinstance(value[0], (str, os.PathLike)) and os.path.isfile(value[0]):
                return value
    return None


def _file_size(path):
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def fingerprint(dataset):
    """Tells data sets apart by what is cheap to look at: type, length, plain attributes, some of the samples."""
    kind = type(dataset)
    facts = [kind.__module__, kind.__qualname__, length_hint(dataset, -1)]
    facts += sorted((k, v) for k, v in getattr(dataset, "__dict__", {}).items() if isinstance(v, (str, int, float)))
    samples = getattr(dataset, "samples", None)
    samples = samples if isinstance(samples, list) else _paths_of(dataset)
    if samples:
        facts += [samples[i] for i in (0, len(samples) // 2, -1)]
    if _is_subset(dataset):
        facts += [fingerprint(dataset.dataset), *(str(dataset.indices[i]) for i in (0, -1) if len(dataset))]
    return hashlib.blake2b(repr(facts).encode(), digest_size=12).hexdigest()


def _cache_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "drapps", "ledgers")
