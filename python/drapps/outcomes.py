"""What becomes of the samples of a chain with Python functions, in whatever process they are made."""

import pickle
import random
import traceback
from typing import NamedTuple

from drapps import _core
from drapps.stages import UserError

REPLACE_TRIES = 16
MAX_BAD = 1000  # bad samples of an epoch, where nobody says otherwise; as the library's default

# Errors of a sample's data, which on_bad_sample decides about.
BAD_DATA = (_core.FormatError, _core.IOError, _core.LimitError, _core.UnsupportedError, _core.FileMissingError)


class Outcome(NamedTuple):
    """What became of a position: "sample", "dropped" by a filter, "left_out" (bad, and skipped), or "failed"."""

    position: int
    what: str
    sample: object = None
    id: int = -1
    error: object = None
    bad: dict | None = None  # the bad sample that was here: position, id, key, error and action


class Group(NamedTuple):
    """Outcomes that belong together: those of a batch, or of a part of the order."""

    outcomes: list
    fields: dict | None = None  # of the batch; the samples are then not in the outcomes


class Maker:
    """Makes outcomes, one at a time; on_bad: "raise", "skip" or "replace"."""

    def __init__(self, runner, on_bad):
        self._runner, self._on_bad = runner, on_bad

    def make(self, epoch, position):
        """The outcome at a position of the epoch's order."""
        outcome = self._try(epoch, position)
        return self.bad(epoch, position, outcome.error) if outcome.what == "bad" else outcome

    def _try(self, epoch, position):
        """Errors of user functions come back as "failed", those of the data as "bad"."""
        try:
            sample = self._runner.run(epoch, position)
        except UserError as error:
            return Outcome(position, "failed", error=error.__cause__)
        except BAD_DATA as error:
            return Outcome(position, "bad", error=error)
        return Outcome(position, "dropped") if sample is None else Outcome(position, "sample", sample, sample.id)

    def bad(self, epoch, position, error):
        """The outcome where the sample cannot be made."""
        if self._on_bad == "raise":
            return Outcome(position, "failed", error=error)
        sample_id, _ = self._runner.place(epoch, position)
        note = {"position": position, "id": sample_id, "key": self._runner.dataset.key(sample_id), "error": str(error)}
        if self._on_bad == "skip":
            return Outcome(position, "left_out", bad={**note, "action": "skipped"})
        return self.replacement(epoch, note)._replace(position=position, bad={**note, "action": "replaced"})

    def replacement(self, epoch, note):
        """A good sample in place of a bad one, of which the note tells, chosen by the seed."""
        choice = random.Random(f"{self._runner.seed}/{epoch}/{note['position']}")
        for _ in range(REPLACE_TRIES):
            other = self._try(epoch, choice.randrange(self._runner.dataset.places))
            if other.what in ("sample", "failed"):
                return other
        text = f"{note['key']}: {note['error']}; found no sample to take its place"
        return Outcome(note["position"], "failed", error=_core.BadSampleError(text))

    def name(self, epoch, position):
        """The name of the sample at a position."""
        return self._runner.dataset.key(self._runner.place(epoch, position)[0])


def portable(outcome):
    """The outcome with an error that can be pickled, and its traceback as a note."""
    if outcome.what != "failed":
        return outcome
    error = outcome.error
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"traceback in the worker process:\n{text}")
    return outcome._replace(error=error)


def gathered(outcomes, collate):
    """The group of a batch's outcomes, its fields made by collate(samples); None: that is done elsewhere."""
    samples = [outcome.sample for outcome in outcomes if outcome.what == "sample"]
    whole = all(outcome.what in ("sample", "left_out") for outcome in outcomes)
    if collate is None or not samples or not whole:
        return Group(outcomes)
    return Group([outcome._replace(sample=None) for outcome in outcomes], collate(samples))


def filled(outcomes, batch_size):
    """Groups of a batch each: those that a filter dropped do not count."""
    group, n = [], 0
    for outcome in outcomes:
        group.append(outcome)
        n += outcome.what != "dropped"
        if n == batch_size or outcome.what == "failed":
            yield Group(group)
            group, n = [], 0
    yield Group(group)
