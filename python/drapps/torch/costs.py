"""Costs: what samples of a Python data set are predicted to take, so that slow ones start early.

A Ledger remembers each sample; it is asked only where costs differ enough to matter, and told in blocks, so that cheap
samples are not held up by book-keeping.
"""

from drapps.ledger import Ledger
from drapps.torch.state import length_of

BLOCK = 512  # samples that are noted at a time


def costs_of(loader):
    """The costs of a loader's samples, kept over its passes; None where samples have no numbers."""
    if not loader.lanes or not length_of(loader.dataset):
        return None
    return Costs(loader.dataset)


class Costs:
    """Predictions for indices, and what samples really took."""

    def __init__(self, dataset):
        self._ledger = Ledger(dataset)
        self._telling = self._ledger.is_telling
        self._indices, self._ns = [], []

    def predict(self, indices):
        """Nanoseconds of each, for Fleet.post; None: nothing is known that would change anything."""
        if not self._telling or not all(self._known(index) for index in indices):
            return None
        return self._ledger.predict(indices)

    def _known(self, index):
        return type(index) is int and 0 <= index < len(self._ledger.units)

    def note(self, index, ns):
        """A sample took so long."""
        if ns and self._known(index):
            self._indices.append(index)
            self._ns.append(ns)
            if len(self._ns) >= BLOCK:
                self.flush()

    def flush(self):
        """What was noted goes into the ledger."""
        if self._ns:
            self._ledger.note(self._indices, self._ns)
            self._telling = self._ledger.is_telling or self._ledger.model.is_useful
            self._indices, self._ns = [], []

    def save(self):
        """At the end of a pass: for later runs."""
        self.flush()
        self._ledger.save()
