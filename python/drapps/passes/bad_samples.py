"""Bad samples of a loader: counted against max_bad, logged, and listed, so that a data set can be cleaned.

A sample is bad when making it raises.  on_bad_sample decides: "raise" it, leave it out ("skip"), or deliver a replacement
("replace": replacement.py).
"""

import logging
from collections import deque
from typing import NamedTuple

from drapps import _core
from drapps.printable import printable

log = logging.getLogger("drapps")

MAX_LISTED = 1000  # samples that a BadList keeps
MAX_BAD = 1000  # bad samples of a pass, where the user sets no max_bad; as the library's default
MAX_NAMED = 8  # samples in a note
ACTIONS = {"skip": "skipped", "replace": "replaced"}


def log_bad(name, action, error):
    """Logs one line, whatever characters the name of the sample holds."""
    log.warning("bad sample %s (%s): %s", printable(name), action, printable(error))


class BadSample(NamedTuple):
    """A sample that was left out or replaced."""

    index: object  # in the data set
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
    tell: a function that writes a bad sample into the trace, or None.
    """

    def __init__(self, policy, max_bad, equal, counts, bad_list, epoch):
        self.policy, self.equal = policy, equal
        self.tell = None
        self._max = MAX_BAD if max_bad is None else max_bad
        self._counts, self._list, self._epoch = counts, bad_list, epoch
        self._n = 0

    @property
    def too_many(self):
        """Whether max_bad is exceeded."""
        return self._n > self._max

    def report(self, index, error):
        """Counts, logs and lists a sample that was left out or replaced."""
        self._n += 1
        self._counts["bad_samples"] += 1
        action, text, named = ACTIONS[self.policy], error_text(error), self._list.text(index)
        log_bad(named, action, text)
        self._list.add(index, text, self._epoch)
        if self.tell is not None:
            name = {"id": index} if isinstance(index, int) else {"key": str(index)}
            self.tell(**name, error=text, action=action)
        if self.too_many:
            raise _core.BadSampleError(
                f"{self._n} bad samples, allowed are {self._max}; the last: sample {named}: {text}"
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
