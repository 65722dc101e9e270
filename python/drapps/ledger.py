"""Ledger: what each sample of a Python data set costs, so that slow samples are known before they run.

The costs, the file and the predictions are in C (drapps/ledger.h) and shared with native loaders.  This module has the
parts that need Python: which data set a ledger belongs to, and hints for samples that were never measured (the size of
a file, or the data set's own cost_hint(index)).  The ledger only decides what starts first: a wrong or missing entry
costs time, never a sample.

Costs is a loader's view of a Ledger: it asks only where costs differ enough to matter, and tells in blocks, so that
cheap samples are not held up by book-keeping.
"""

import hashlib
import os
import time
from operator import length_hint

import numpy

from drapps import _core

# After HINTS hints, no more are requested if most took longer than SLOW_HINT_NS.
SLOW_HINT_NS, HINTS = 100_000, 16
GUESSES, GUESS_S = 64, 0.002  # before anything is measured: about this many hints are taken, within this time
BLOCK, BLOCK_NS = 512, 100_000_000  # samples that are noted at a time, or what they took together,
LEAST = 8  # and at least this many: fewer do not show how fast the machine is
FIRST_LOOK = 20  # samples
LEAST_NS = 1_000_000  # of the mean sample, for the longest one to tell something
MOST = 10_000_000  # samples of a data set: above, remembering each takes more than it gives


class Ledger:
    """The costs of the samples of one data set.

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
        """Return the predicted nanoseconds of each sample; 0 if nothing is known."""
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
        """Take hints of samples spread over the data set; give up if that takes too long or a hint fails."""
        hints, end = [], time.perf_counter() + GUESS_S
        for index in range(0, self.n_samples, max(1, self.n_samples // GUESSES)):
            hint = self._hint_of(index)
            if hint is None or time.perf_counter() > end:
                return
            hints.append(hint)
        self._core.guess(numpy.array(hints, numpy.float64))

    @property
    def is_guessing(self):
        """Return whether costs are predicted from hints alone, because too few samples were measured."""
        return self._core.estimates_by() == "guess"

    @property
    def is_estimating(self):
        """Return whether the hints explain the measured costs."""
        return self._core.estimates_by() == "model"

    def _hints_of(self, indices):
        """Return the hints of samples as an array; NaN for a sample without one."""
        hints = (self._hint_of(index) for index in indices)
        return numpy.array([numpy.nan if hint is None else hint for hint in hints], numpy.float64)

    def _hint_of(self, index):
        """Return the hint of a sample; a hint function that fails or is slow is dropped."""
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
        """Record the measured costs of samples."""
        hints = self._hints_of(indices) if self.hint else None
        self._core.note(numpy.asarray(indices, numpy.uint64), numpy.asarray(ns, numpy.float64), hints)

    @property
    def units(self):
        """Return the recorded costs in units of the typical cost; 0: never measured."""
        return numpy.frombuffer(self._core.units(), numpy.float32)

    @property
    def unit_ns(self):
        """Return the nanoseconds of a unit; 0: nothing was measured."""
        return self._core.look()[1]

    @property
    def median_ns(self):
        """Return the median of the measured or guessed costs; 0: there are none."""
        return self._core.look()[2]

    @property
    def spread(self):
        """Return (mean, maximum) of the measured or guessed costs in nanoseconds; (0, 0): there are none."""
        return self._core.look()[3:5]

    @property
    def is_telling(self):
        """Return whether the costs differ enough for a ledger to be of use."""
        return self._core.look()[5]

    def save(self):
        """Write the ledger, merged with the costs that other processes wrote."""
        if not self._core.save():
            self.path = None  # a folder that cannot be written, a full disk: continue without the file


# --- for a loader ---


def costs_of(dataset, length):
    """The Costs of a data set; None where samples have no numbers, or there are too many."""
    return Costs(dataset) if 0 < (length or 0) <= MOST else None


class Costs:
    """Predictions for indices, and what samples really took."""

    def __init__(self, dataset):
        self._ledger = Ledger(dataset, None if os.environ.get("DRAPPS_LEDGER") == "off" else "auto")
        self._telling = self._ledger.is_telling or self._ledger.is_guessing
        self._indices, self._ns = [], []
        self._spent_ns = 0
        self._noted, self._next_look = 0, FIRST_LOOK

    def predict(self, indices):
        """Nanoseconds of each, for DatasetPool.post; None: nothing is known that would change anything."""
        return self._ledger.predict(indices) if self._telling and self._known(indices) else None

    def _known(self, indices):
        n = self._ledger.n_samples
        return all(type(index) is int and 0 <= index < n for index in indices)

    def median(self):
        """Nanoseconds that half of the samples take at most; 0: nothing is known that would change anything."""
        return self._ledger.median_ns if self._telling else 0

    def longest_by_mean(self):
        """How many times the mean the longest sample takes; 0: nothing is known that would change anything.

        What short samples take is mostly chance.
        """
        mean_ns, longest_ns = self._ledger.spread if self._telling else (0, 0)
        return longest_ns / mean_ns if mean_ns >= LEAST_NS else 0.0

    def note(self, indices, ns):
        """Samples took so long.  True: what was only guessed before, median() too, is better known by now."""
        if not all(ns) or not self._known(indices):
            return False
        self._indices += indices
        self._ns += ns
        self._spent_ns += sum(ns)
        if len(self._ns) < BLOCK and (self._spent_ns < BLOCK_NS or len(self._ns) < LEAST):
            return False
        guessed = self._ledger.is_guessing
        self._flush()
        return guessed

    def _flush(self):
        """What was noted goes into the ledger; all of it is looked at each time it has doubled."""
        if not self._ns:
            return
        self._ledger.note(self._indices, self._ns)
        self._noted += len(self._ns)
        self._indices, self._ns, self._spent_ns = [], [], 0
        if self._noted >= self._next_look:
            self._next_look = 2 * self._noted
            self._telling = self._ledger.is_telling or self._ledger.is_estimating

    def save(self):
        """At the end of a pass: for this and later runs."""
        self._flush()
        self._telling = self._ledger.is_telling or self._ledger.is_estimating
        self._ledger.save()


# --- data sets ---


def hint_of(dataset):
    """Return a function from an index to a number that may predict the cost, or None."""
    if callable(getattr(dataset, "cost_hint", None)):
        return dataset.cost_hint
    if _is_subset(dataset):
        inner = hint_of(dataset.dataset)
        return inner and (lambda i: inner(dataset.indices[i]))
    files = files_of(dataset)
    return files and (lambda i: _file_size(files(i)))


def files_of(dataset):
    """Return a function from an index to the path of the sample's file, or None."""
    if _is_subset(dataset):
        inner = files_of(dataset.dataset)
        return inner and (lambda i: inner(dataset.indices[i]))
    samples = getattr(dataset, "samples", None)
    if _are_files(samples) and len(samples) == length_hint(dataset, -1):
        return lambda i: samples[i][0]
    paths = _paths_of(dataset)
    return paths and (lambda i: os.fspath(paths[i]))


def _is_subset(dataset):
    """Return whether a data set is torch's Subset, by its name: torch is not imported here."""
    return type(dataset).__module__ == "torch.utils.data.dataset" and type(dataset).__name__ == "Subset"


def _are_files(samples):
    """Return whether `samples` is a list of (path, ...), as in torchvision's folders."""
    return (
        isinstance(samples, list) and bool(samples) and isinstance(samples[0], tuple) and isinstance(samples[0][0], str)
    )


def _paths_of(dataset):
    """Return the first attribute that is a list of files, one for each sample, or None."""
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
    """Return a digest that identifies a data set, from its type, length, plain attributes and some samples."""
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
