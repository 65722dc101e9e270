"""BadList: which samples of a loader were bad, so that a data set can be cleaned."""

import logging
from collections import deque
from typing import NamedTuple

from drapps.printable import printable

log = logging.getLogger("drapps")

MOST = 1000  # samples that are remembered


def warn_of(name, action, error):
    """One line in the log, whatever the name of the sample holds."""
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
        self._rows = deque(maxlen=MOST)

    def add(self, index, error, epoch, key=None):
        """A sample is bad; error: in words."""
        self._rows.append(BadSample(index, self.name(index, key), error, epoch))

    def name(self, index, key=None):
        """The sample's file where the data set has a list of them, else its key."""
        try:
            return (self._dataset is not None and self._file(index)) or key
        except Exception:  # it looked like a list of files, and is none
            return key

    def text(self, index):
        """The sample in words: its index, and its file where that is known."""
        name = self.name(index)
        return f"{index!r}" if name is None else f"{index!r} ({printable(name)})"

    def _file(self, index):
        from drapps.ledger import files_of  # which needs NumPy

        files = files_of(self._dataset)
        return files and files(index)

    def told(self, rows, epoch):
        """What a batch says of bad samples (Batch.bad): a warning for each, and it is remembered."""
        for bad in rows:
            key = bad.get("key")  # stays away where it is not UTF-8
            warn_of(key or bad["id"], bad["action"], bad["error"])
            self.add(bad["id"], bad["error"], epoch, key)

    def newest(self):
        """A list of BadSample, oldest first."""
        return list(self._rows)
