"""Bad samples of a loader: counted against max_bad, logged, listed, so that a data set can be cleaned, and replaced.

A sample is bad when making it raises.  on_bad_sample decides: "raise" it, leave it out ("skip"), or deliver a
replacement ("replace").  Which sample that is follows from one rule for loaders of every kind.

The rule is the C function dr__replacement (src/exec/replacement.c).  Its key is (seed, epoch, id, occurrence) of the
bad sample and the number of the attempt; it chooses among n candidates.  There are up to 16 attempts, until a sample is
good.  The key is:

| loader | seed | epoch | id | occurrence | candidates |
|---|---|---|---|---|---|
| native, chain | the loader's | the loader's | of the sample | in the epoch's order | the data set |
| torch's DataLoader | 0 | the pass's base seed | native_id(index) | earlier ones in the pass | the data set |

- A batch of which all samples are left out, where ranks need equal batches, gets a replacement of its first sample; the
  occurrence is 0.
- An index that the data set does not have is its own id, with the occurrence 0.  A native pass chooses its replacement
  before it is pushed; if that one is bad, the engine replaces it by its own key.
- An index that is no int has the id (batch number << 32) + slot; candidates are the indices of its batch.
"""

import logging
import operator
from collections import Counter, deque
from contextlib import contextmanager
from typing import NamedTuple

from drapps import _core
from drapps.printable import printable

log = logging.getLogger("drapps")

MAX_LISTED = 1000  # samples that a BadList keeps
MAX_BAD = 1000  # bad samples of a pass, where the user sets no max_bad; as the library's default
MAX_NAMED = 8  # samples in a note
ACTIONS = {"skip": "skipped", "replace": "replaced"}
ATTEMPTS = 16  # as DR__MAX_REPLACE
MASK = (1 << 64) - 1


def log_bad(name, action, error):
    """Logs one line, whatever characters the name of the sample holds; the name once, also where the error has it."""
    name, error = printable(name), printable(error)
    log.warning("bad sample%s (%s): %s", "" if f'"{name}"' in error else f" {name}", action, error)


@contextmanager
def not_logged():
    """Inside the block no line is logged for a bad sample: the caller reports them in its own way."""
    def others(record):
        return not str(record.msg).startswith("bad sample")

    log.addFilter(others)
    try:
        yield
    finally:
        log.removeFilter(others)


class BadSample(NamedTuple):
    """A sample that was left out or replaced."""

    index: object  # type: ignore[assignment]  # in the data set; hides tuple.index
    name: str | None  # its file or its key, where that is known
    error: str
    epoch: int


class BadList:
    """The newest bad samples of a loader.

    dataset: one of torch, which may have a list of its files.
    """

    def __init__(self, dataset=None):
        self._dataset = dataset
        self._rows = deque(maxlen=MAX_LISTED)

    def add(self, index, error, epoch, key=None):
        """Adds a sample; error: its text."""
        self._rows.append(BadSample(index, self.name(index, key), error, epoch))

    def name(self, index, key=None):
        """The sample's file where the data set has a list of them, else its key."""
        try:
            return (self._dataset is not None and self._file(index)) or key
        except Exception:  # it looked like a list of files, and is none
            return key

    def text(self, index):
        """The sample for a message: its index, and its file where that is known."""
        name = self.name(index)
        return f"{index!r}" if name is None else f"{index!r} ({printable(name)})"

    def _file(self, index):
        from drapps.ledger import files_of  # which needs NumPy

        files = files_of(self._dataset)
        return files and files(index)

    def add_rows(self, rows, epoch):
        """Logs and adds the bad samples that a batch lists (Batch.bad)."""
        for bad in rows:
            key = bad.get("key")  # absent where it is not UTF-8
            log_bad(key or bad["id"], bad["action"], bad["error"])
            self.add(bad["id"], bad["error"], epoch, key)

    def newest(self):
        """A list of BadSample, oldest first."""
        return list(self._rows)


class BadCounter:
    """Counts and reports the bad samples of one pass; more than max_bad of them (None: MAX_BAD) are an error.

    equal: no batch may be lost, because other ranks count on it: one that would be empty gets a replacement.
    listed: the BadList.  replacements: the Replacements of the pass, once its base seed is drawn.
    tell: a function that writes a bad sample into the trace, or None.
    """

    def __init__(self, policy, max_bad, equal, counts, bad_list, epoch):
        self.policy, self.equal = policy, equal
        self.tell = self.replacements = None
        self.listed = bad_list
        self._max = MAX_BAD if max_bad is None else max_bad
        self._counts, self._epoch = counts, epoch
        self._n = 0

    @property
    def too_many(self):
        """Whether max_bad is exceeded."""
        return self._n > self._max

    def report(self, index, error):
        """Counts, logs and lists a sample that was left out or replaced."""
        self._n += 1
        self._counts["bad_samples"] += 1
        action, text, named = ACTIONS[self.policy], error_text(error), self.listed.text(index)
        log_bad(named, action, text)
        self.listed.add(index, text, self._epoch)
        if self.tell is not None:
            name = {"id": index} if isinstance(index, int) else {"key": str(index)}
            self.tell(**name, error=text, action=action)
        if self.too_many:
            raise _core.BadSampleError(
                f"more than max_bad = {self._max} bad samples; the last: sample {named}: {text}"
            )


def error_text(error):
    """One line for an exception, or for torch's wrapper of one from another process."""
    if hasattr(error, "exc_msg"):
        return error.exc_msg.strip().splitlines()[-1]
    return f"{type(error).__name__}: {error}"


def indices_of(requested, batched):
    """A list of what a data set was asked for at once; a batch may be another thing than a list, as a slice."""
    return list(requested) if batched and isinstance(requested, (list, tuple)) else [requested]


def note_samples(error, indices, bad_list):
    """Adds a note to an exception: the sample that caused it, or the samples of which one did, where the data set was
    asked for all of them at once."""
    if len(indices) == 1:
        note = f"in sample {bad_list.text(indices[0])}"
    else:
        more = f" and {len(indices) - MAX_NAMED} more" if len(indices) > MAX_NAMED else ""
        note = f"in one of the samples {', '.join(map(repr, indices[:MAX_NAMED]))}{more}"
    if note not in getattr(error, "__notes__", ()):  # the same exception may be raised again
        error.add_note(note)


# --- replacement ---


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
    return _core.BadSampleError(f"sample {index!r}: {error_text(error)}; found no sample to replace it")


class CarefulFetcher:
    """Gets samples one by one, so that one that fails does not take its batch with it.

    before: called with the place of each sample before it is made, or None.
    """

    def __init__(self, dataset, bad, before=None):
        self._dataset, self._bad, self._before = dataset, bad, before
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
        for other in self._bad.replacements.of(index, place, others, occurrence):
            try:
                return self._get(place, other)
            except Exception:
                continue
        raise no_replacement(index, error) from error
