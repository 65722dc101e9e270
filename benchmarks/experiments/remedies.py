"""Do remedies have the gain that `drapps profile` predicts?  Runs the same program again without the plant.

The predicted gain is that of the expected finding, even if it was not the verdict: the gain without the cause, or the
gain of its usual remedy if only that was done.  The measured gain is the rate of the remedied run over that of the
planted run, both by the profile.
"""

import math
from typing import NamedTuple

from drapps.printing import print_table
from benchmarks.experiments import adapt_tables

FIGURES = ("predicted", "measured", "ratio")
COLUMNS = ("planted", "strength", "remedy", *FIGURES, "then")
CLOSE = 1.25  # a factor; short runs of the same program differ by a tenth


class Trial(NamedTuple):
    """The result of a remedy."""

    planted: str
    strength: str
    remedy: str
    predicted: float | None  # None: the cause was not found
    measured: float | None  # None: one of the runs failed
    after: str  # the verdict on the remedied run

    @property
    def ratio(self):
        """Measured over predicted gain; None if either is missing."""
        return self.measured / self.predicted if self.measured and self.predicted else None

    @property
    def close(self):
        """Whether both gains are about equal."""
        return self.ratio is not None and 1 / CLOSE <= self.ratio <= CLOSE

    def as_dict(self):
        return {**self._asdict(), "ratio": self.ratio}


def tried(at, case, expected, found, seconds):
    """Return the trials of all remedies of a case.  found: the profile of its run."""
    trials = []
    for remedy in sorted(case.remedies, key=lambda remedy: remedy.gone):  # remedies that keep the conditions come first
        if remedy.gone:
            at.undo.close()
        after = at.profiled(case.remedied(remedy, found.get("facts", {})), seconds)
        trials.append(Trial(expected, case.strength, remedy.name, predicted_gain(expected, found, remedy),
                            measured_gain(found, after), after.get("verdict") or "none"))  # fmt: skip
    return trials


def predicted_gain(name, found, remedy):
    """Return the gain that the finding of that name predicts; None if there is no such finding."""
    key = "without" if remedy.gone else "gain"
    return next((finding[key] for finding in found.get("findings", []) if finding["name"] == name), None)


def measured_gain(before, after):
    """Return rate after over rate before; None if either was not measured."""
    rates = [run.get("facts", {}).get("rate") for run in (before, after)]
    return rates[1] / rates[0] if all(rates) else None


def table(trials):
    """Print the predicted and measured gains."""
    print_table([(name, "right") if name in FIGURES else name for name in COLUMNS], _cells(trials))
    print(summary(trials))


def page(trials):
    """Return the same table as Markdown."""
    return f"{adapt_tables.table(COLUMNS, _cells(trials))}\n{summary(trials)}.\n"


def _cells(trials):
    return [(trial.planted, trial.strength, trial.remedy, _shown(trial.predicted, "x"), _shown(trial.measured, "x"),
             _shown(trial.ratio), trial.after) for trial in trials]  # fmt: skip


def summary(trials):
    """Return a line about the accuracy of the predictions."""
    ratios = [trial.ratio for trial in trials if trial.ratio]
    text = f"{sum(trial.close for trial in trials)} of {len(trials)} gains predicted within a factor of {CLOSE}"
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        text += f"; measured / predicted: {mean:.2f} (geometric mean), {min(ratios):.2f} to {max(ratios):.2f}"
    return text


def _shown(value, unit=""):
    return "-" if value is None else f"{value:.2f}{unit}"
