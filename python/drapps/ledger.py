"""Ledger: what each sample of a Python data set cost, so that slow samples are known before they run.

Costs are kept per sample, in units of the data set's typical cost, so that a ledger made on another machine is still of
use.  A sample that was never seen is predicted from what is known about it beforehand (the size of its file, or the data
set's own cost_hint(index)), where that is known quickly: until it was seen whether it tells anything, in proportion to
it.  The ledger only decides what starts first: a wrong or missing entry costs time, never a sample.
"""

import contextlib
import hashlib
import os
import tempfile
import time
from operator import length_hint

import numpy

MAGIC = b"drapps ledger 1"
HEADER = numpy.dtype([("magic", "S16"), ("samples", "<u8"), ("unit_ns", "<f8")])
KEEP = 0.5  # part of the earlier cost in the new one: random augmentations make costs vary
SLOW_HINT_NS, HINTS = 100_000, 16  # a hint that mostly takes so long, after so many, is not asked again
FAR = 1024.0  # a typical cost of so many units, or one that many times smaller, changes the unit
SPREAD = 2.0  # costs matter where the slowest twentieth costs so much more than the median
GUESSES, GUESS_S = 64, 0.002  # so many hints and some are looked at before anything was seen, in no more time
GUESSED_NS = 5e6  # what a typical sample is taken to cost until one was seen: only proportions are known
MOST_HINT = 1e30  # of a guess: costs are kept in single precision


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
        self.model = LinearModel()
        self.units = numpy.zeros(len(dataset), numpy.float32)  # 0: never seen
        self.unit_ns = 0.0
        self.path = None
        if folder is not None:
            self.path = os.path.join(_cache_folder() if folder == "auto" else folder, f"{fingerprint(dataset)}.ledger")
            self._load()
        self._guess = None if self.unit_ns else self._first_guess()

    def predict(self, indices):
        """Nanoseconds that each sample will take; 0 where nothing is known."""
        costs = self.units[indices] * numpy.float32(self.unit_ns)
        unknown = numpy.flatnonzero(costs == 0)
        from_hint = self._predictor() if unknown.size else None
        if from_hint:
            for i in unknown:
                hint = self._hint_of(indices[i])
                costs[i] = 0 if hint is None else max(from_hint(hint), 0)
        return costs

    def _predictor(self):
        """A function from a hint to nanoseconds, or None."""
        if self.is_guessing:
            return lambda hint: self._guess.predict(hint, self._typical_ns)
        return self.model.predict if self.model.is_useful else None

    @property
    def _typical_ns(self):
        return self.unit_ns or GUESSED_NS

    def _first_guess(self):
        """From hints of samples all over the data set; None where these take too long, or are too much alike."""
        hints, end = [], time.perf_counter() + GUESS_S
        for index in range(0, len(self.units), max(1, len(self.units) // GUESSES)):
            hint = self._hint_of(index)
            if hint is None or not 0 <= hint < MOST_HINT or time.perf_counter() > end:
                return None
            hints.append(hint)
        hints = numpy.array(hints)
        return Guess(hints) if _differ(hints) else None

    @property
    def is_guessing(self):
        """Whether costs are told by hints alone, because too few were seen."""
        return self._guess is not None and self.hint is not None and self.model.n < LinearModel.ENOUGH

    def _hint_of(self, index):
        """What is known of a sample beforehand; a hint that fails or is slow (far storage) is not asked again."""
        if self.hint is None:
            return None
        began = time.perf_counter_ns()
        try:
            found = float(self.hint(index))
        except Exception:
            self.hint = found = None
        self.hints += 1
        self.slow_hints += time.perf_counter_ns() - began > SLOW_HINT_NS
        if self.hints >= HINTS and 2 * self.slow_hints > self.hints:
            self.hint = None
        return found

    def note(self, indices, ns):
        """Takes down what samples cost."""
        indices, ns = numpy.asarray(indices), numpy.asarray(ns, numpy.float64)
        if not self.unit_ns:
            self.unit_ns = max(_quantile(ns, 0.5), 1.0)
        self._follow_machine(self.units[indices], ns)
        new = (ns / self.unit_ns).astype(numpy.float32)
        old = self.units[indices]
        self.units[indices] = numpy.where(old > 0, KEEP * old + (1 - KEEP) * new, new)
        for index, cost in zip(indices.tolist(), ns.tolist()) if self.hint else ():
            hint = self._hint_of(index)
            if hint is not None:
                self.model.add(hint, cost)

    def _follow_machine(self, known, ns):
        """A machine that is faster or slower than the ledger's changes the unit, not each cost."""
        seen = known > 0
        if seen.sum() >= 8:
            ratio = _quantile(ns[seen] / (known[seen] * self.unit_ns), 0.5)
            self.unit_ns *= min(max(ratio, 0.5), 2.0) ** (1 - KEEP)
            self._stay_near_one(_quantile(known[seen], 0.5))

    def _stay_near_one(self, typical):
        """Costs that vary pull the unit down a little each time, and the numbers up: they would leave their range."""
        if not 1 / FAR < typical < FAR:
            self.units /= numpy.float32(typical)
            self.unit_ns *= typical

    @property
    def median_ns(self):
        """Of what was seen or is guessed; 0: nothing."""
        if self.is_guessing:
            return self._typical_ns
        seen = self._seen()
        return _quantile(seen, 0.5) if seen.size else 0.0

    @property
    def spread(self):
        """(nanoseconds of the mean, of the longest) of what was seen or is guessed; 0, 0: nothing."""
        costs = self._guess.predict(self._guess.hints, self._typical_ns) if self.is_guessing else self._seen()
        return (float(costs.mean()), float(costs.max())) if costs.size else (0.0, 0.0)

    def _seen(self):
        """Nanoseconds of all samples that were."""
        return self.units[self.units > 0] * self.unit_ns

    # --- at rest ---

    def _load(self):
        """Takes what an earlier run left; anything odd counts as nothing."""
        try:
            with open(self.path, "rb") as file:
                head = numpy.frombuffer(file.read(HEADER.itemsize), HEADER)[0]
                units = numpy.frombuffer(file.read(), "<f4")
        except (OSError, ValueError, IndexError):
            return
        sane = units.size == len(self.units) == head["samples"] and numpy.isfinite(units).all() and (units >= 0).all()
        if head["magic"] == MAGIC and sane and 0 < head["unit_ns"] < 1e15:
            self.units, self.unit_ns = units.astype(numpy.float32), float(head["unit_ns"])

    @property
    def is_telling(self):
        """Whether costs differ enough for a ledger to be of use."""
        if not self.unit_ns:  # nothing was seen: no need to look at each sample
            return False
        return _differ(self.units[self.units > 0])

    def save(self):
        """Writes the ledger, with what another process may have learnt of samples that this one has not seen."""
        if self.path is None or not self.is_telling:
            return
        mine, unit_ns = self.units, self.unit_ns
        self.units = numpy.zeros_like(mine)
        self._load()
        theirs = self.units * numpy.float32(self.unit_ns / unit_ns)
        self.units, self.unit_ns = numpy.where(mine > 0, mine, theirs), unit_ns
        head = numpy.array((MAGIC, len(self.units), unit_ns), HEADER)
        try:
            _write_anew(self.path, head.tobytes() + self.units.astype("<f4").tobytes())
        except OSError:
            self.path = None  # a folder that cannot be written, a full disk: go on without


def _differ(costs):
    """Enough for it to matter, as far as some can tell."""
    return costs.size >= 20 and _quantile(costs, 0.95) > SPREAD * _quantile(costs, 0.5) > 0


def _quantile(values, part):
    """One of the values.  numpy.median imports numpy.ma first: 7 ms of the first batch."""
    at = int(part * (values.size - 1))
    return float(numpy.partition(values, at)[at])


def _write_anew(path, content):
    """The file is the old one or the new one at any time."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # it may have its name already
                os.unlink(file.name)
            raise


class Guess:
    """cost = b x, before it was seen what samples cost.  hints: of some samples."""

    def __init__(self, hints):
        self.hints = hints
        self._typical = _quantile(hints, 0.5)

    def predict(self, x, typical_ns):
        """typical_ns: what typical samples take."""
        return typical_ns * x / self._typical


class LinearModel:
    """cost = a + b x, by least squares over everything seen."""

    ENOUGH = 16

    def __init__(self):
        self.n = 0
        self.sums = numpy.zeros(5)  # x, y, xx, xy, yy

    def add(self, x, y):
        self.n += 1
        self.sums += (x, y, x * x, x * y, y * y)

    def _moments(self):
        x, y, xx, xy, yy = self.sums / max(self.n, 1)
        return x, y, xx - x * x, xy - x * y, yy - y * y

    @property
    def is_useful(self):
        """Whether it explains at least a third of the differences."""
        if self.n < self.ENOUGH:
            return False
        _, _, vx, cxy, vy = self._moments()
        return vx > 0 and vy > 0 and cxy * cxy > vx * vy / 3

    def predict(self, x):
        mx, my, vx, cxy, _ = self._moments()
        return my + cxy / vx * (x - mx)


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
