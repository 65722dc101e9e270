"""Costs: what samples of a Python data set are predicted to take, so that slow ones start early.

A Ledger remembers each sample; it is asked only where costs differ enough to matter, and told in blocks, so that cheap
samples are not held up by book-keeping.
"""

import os

from drapps.ledger import Ledger

BLOCK, BLOCK_NS = 512, 100_000_000  # samples that are noted at a time, or what they took together,
LEAST = 8  # and so many at least: fewer do not tell how fast the machine is
FIRST_LOOK = 20  # samples
LEAST_NS = 1_000_000  # of the mean sample, for the longest one to tell something
MOST = 10_000_000  # samples of a data set: above, remembering each takes more than it gives


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
