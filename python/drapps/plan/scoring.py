"""Which strategy is best: by weights, as PRESTO has them, or by prices.

    metrics    throughput (samples/s), preparation (seconds of the offline pass), storage (bytes), all of the whole data
    weights    score = w_preprocessing (1 - norm(preparation)) + w_storage (1 - norm(storage)) + w_throughput
               norm(throughput) with norm(x) = (x - min) / (max - min) over the strategies: 1 is best
    prices     score = - money for the offline pass, the storage and the training

Both only rise with throughput, so that the bounds of a throughput are the bounds of its score.
"""

import math
from typing import NamedTuple

from drapps import _core

HOUR = 3600.0
GB = 1e9


class Metrics(NamedTuple):
    """Of the whole data set."""

    throughput: float  # samples/s
    preparation: float  # seconds
    storage: float  # bytes, the original files included where they are what is read


class Weights(NamedTuple):
    """PRESTO's: how much each metric counts."""

    preprocessing: float = 0.0
    storage: float = 0.0
    throughput: float = 1.0

    def scores(self, metrics, scale=None):
        """{name: score} of {name: Metrics}; more is better.  scale: Metrics that min and max are of, if not the
        same.
        """
        columns = {
            field: _normed(_column(metrics, field), _column(scale or metrics, field)) for field in Metrics._fields
        }
        return {
            name: self.preprocessing * (1 - columns["preparation"][name])
            + self.storage * (1 - columns["storage"][name])
            + self.throughput * columns["throughput"][name]
            for name in metrics
        }

    def __str__(self):
        values = f"{self.preprocessing:g}, {self.storage:g}, {self.throughput:g}"
        return f"weights {values} (preprocessing, storage, throughput)"


def _column(metrics, field):
    return {name: getattr(m, field) for name, m in metrics.items()}


def _normed(values, scale):
    """Each value's place between the least (0) and the greatest (1) of a scale; 0 where all of that are alike."""
    least, most = min(scale.values(), default=0.0), max(scale.values(), default=0.0)
    return {name: (value - least) / (most - least) if most > least else 0.0 for name, value in values.items()}


class Prices(NamedTuple):
    """What things cost; the money's name does not matter."""

    cpu_hour: float = 0.0  # of one CPU
    gb_month: float = 0.0
    gpu_hour: float = 0.0  # of the machine that trains, its CPUs not counted
    epochs: float = 1.0
    months: float = 1.0  # that the data are kept
    cpus: float = 1.0  # that are paid for while data are prepared and while training runs
    samples: int = 1  # of an epoch

    def money(self, m):
        """{"preprocessing", "storage", "training"} of a strategy's metrics."""
        training_hours = self.epochs * self.samples / m.throughput / HOUR if m.throughput else math.inf
        return {
            "preprocessing": m.preparation / HOUR * self.cpus * self.cpu_hour,
            "storage": m.storage / GB * self.gb_month * self.months,
            "training": _times(training_hours, self.gpu_hour + self.cpus * self.cpu_hour),
        }

    def scores(self, metrics, scale=None):
        """{name: score} of {name: Metrics}; more is better.  Prices need no scale."""
        return {name: -sum(self.money(m).values()) for name, m in metrics.items()}

    def __str__(self):
        return (
            f"prices: {self.cpu_hour:g} a CPU hour, {self.gb_month:g} a GB and month for {self.months:g} months, "
            f"{self.gpu_hour:g} a GPU hour, {self.epochs:g} epochs"
        )


def _times(hours, price):
    return hours * price if price else 0.0


def best(objective, metrics):
    """(name of the strategy with the highest score, {name: score}); of equals the one that stores less, then the one
    that is prepared sooner.  None: there is no strategy."""
    scores = objective.scores(metrics)
    if not scores:
        return None, {}
    return max(scores, key=lambda name: (scores[name], -metrics[name].storage, -metrics[name].preparation)), scores


def pareto_front(metrics, fields=Metrics._fields):
    """Names of the strategies that no other beats in one of these metrics without being worse in another."""
    key = {
        name: tuple(-m.throughput if f == "throughput" else getattr(m, f) for f in fields)
        for name, m in metrics.items()
    }
    return [name for name in key if not any(_dominates(key[other], key[name]) for other in key)]


def _dominates(a, b):
    return a != b and all(x <= y for x, y in zip(a, b))


def check_objective(objective):
    """Raises where a weight or price is no number from 0 on."""
    for name, value in objective._asdict().items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not (value >= 0 and math.isfinite(value)):
            raise _core.ArgumentError(f"{name} must be a number from 0 on, got {value!r}")
    if isinstance(objective, Weights) and not any(objective):
        raise _core.ArgumentError("of the weights for preprocessing, storage and throughput one must be above 0")
    return objective
