"""Do remedies bring what `drapps profile` says?  The same program again, with the plant taken away.

Predicted is what the finding says that should be there, whichever verdict came first: the gain without the cause at
all, or that of its usual remedy where only this is done.  Measured is the rate of the remedied run over that of the
planted one, each as the profile saw it.
"""

import math
from typing import NamedTuple

from drapps.printing import print_table
from benchmarks.experiments import adapt_tables

FIGURES = ("predicted", "measured", "ratio")
COLUMNS = ("planted", "strength", "remedy", *FIGURES, "then")
CLOSE = 1.25  # a factor: short runs of the same program differ by a tenth


class Trial(NamedTuple):
    """What came of a remedy."""

    planted: str
    strength: str
    remedy: str
    predicted: float | None  # None: the cause was not found
    measured: float | None  # None: one of both runs came to nothing
    after: str  # the verdict on the remedied run

    @property
    def ratio(self):
        """Measured over predicted; None where one of both is missing."""
        return self.measured / self.predicted if self.measured and self.predicted else None

    @property
    def close(self):
        """Whether both are about the same."""
        return self.ratio is not None and 1 / CLOSE <= self.ratio <= CLOSE

    def as_dict(self):
        return {**self._asdict(), "ratio": self.ratio}


def tried(at, case, expected, found, seconds):
    """Trials of all remedies of a case, of whose run the profile said `found`."""
    trials = []
    for remedy in sorted(case.remedies, key=lambda remedy: remedy.gone):  # first those that keep the conditions
        if remedy.gone:
            at.undo.close()
        after = at.profiled(case.remedied(remedy, found.get("facts", {})), seconds)
        trials.append(Trial(expected, case.strength, remedy.name, predicted_gain(expected, found, remedy),
                            measured_gain(found, after), after.get("verdict") or "none"))  # fmt: skip
    return trials


def predicted_gain(name, found, remedy):
    """What the finding of that name promises; None: it is not among the findings."""
    key = "without" if remedy.gone else "gain"
    return next((finding[key] for finding in found.get("findings", []) if finding["name"] == name), None)


def measured_gain(before, after):
    """Rate after over rate before; None where one of both was not measured."""
    rates = [run.get("facts", {}).get("rate") for run in (before, after)]
    return rates[1] / rates[0] if all(rates) else None


def table(trials):
    """Printed: gains predicted and measured."""
    print_table([(name, "right") if name in FIGURES else name for name in COLUMNS], _cells(trials))
    print(summary(trials))


def page(trials):
    """The same as Markdown."""
    return f"{adapt_tables.table(COLUMNS, _cells(trials))}\n{summary(trials)}.\n"


def _cells(trials):
    return [(trial.planted, trial.strength, trial.remedy, _shown(trial.predicted, "x"), _shown(trial.measured, "x"),
             _shown(trial.ratio), trial.after) for trial in trials]  # fmt: skip


def summary(trials):
    """How good the predictions are, in a line."""
    ratios = [trial.ratio for trial in trials if trial.ratio]
    text = f"{sum(trial.close for trial in trials)} of {len(trials)} gains predicted within a factor of {CLOSE}"
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        text += f"; measured / predicted: {mean:.2f} (geometric mean), {min(ratios):.2f} to {max(ratios):.2f}"
    return text


def _shown(value, unit=""):
    return "-" if value is None else f"{value:.2f}{unit}"
