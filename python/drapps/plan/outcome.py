"""What came of a plan: rows of a table, JSON, CSV."""

import csv
import io
import statistics
from typing import NamedTuple

from drapps.plan.intervals import Interval
from drapps.plan.scoring import Metrics, Prices
from drapps.plan.strategies import Strategy


class Measurement(NamedTuple):
    """One epoch that was measured."""

    strategy: Strategy
    mode: str  # "cold", "warm" or "memory"
    round: int
    epoch: object


class Row(NamedTuple):
    """A strategy that was measured, reckoned for the whole data set."""

    strategy: Strategy
    metrics: Metrics
    rate: Interval
    preparation: Interval
    storage: Interval
    cold: Interval
    warm: Interval
    memory: Interval
    memory_bytes: int  # of loader(cache_memory=...); 0: none
    values: tuple  # samples/s of each round
    cpu_seconds: float  # of the preparation
    why_not: str  # it cannot be chosen; "": it can
    why_out: str  # it left the race
    score: float | None = None
    front: bool = False  # no other is better in one metric and no worse in the rest


class Plan(NamedTuple):
    """The result of drapps.plan.plan and Pipeline.plan."""

    pipe: object
    options: dict
    edges: list
    rows: list
    refused: dict
    unmeasured: dict
    chosen: Strategy | None
    objective: object
    measurements: list
    notes: list
    facts: dict
    interrupted: bool

    @property
    def row(self):
        """The Row of the chosen strategy; None: nothing was measured."""
        return next((row for row in self.rows if row.strategy == self.chosen), None)

    def show(self):
        """Prints the table, what is not in it, and the choice."""
        from drapps.plan.plan_text import show

        show(self)

    def write_page(self, path):
        """Writes a page of HTML with the table and the Pareto fronts."""
        from drapps.atomic_write import write_atomic
        from drapps.plan.plan_page import make_page

        write_atomic(path, make_page(self).encode("utf-8"))

    def apply(self, folder):
        """Does for all samples what was chosen, in a folder that is empty or does not exist; returns the lines of code
        that use it: two, or one where the pipeline stays as it is."""
        from drapps.plan.apply_plan import apply

        return apply(self, folder)

    def as_dict(self):
        """Everything, as values for JSON."""
        return {
            "pipeline": repr(self.pipe),
            **self.facts,
            "objective": str(self.objective),
            "chosen": self.chosen and self.chosen.name,
            "edges": [{"stages": e.stages, "label": e.label, "legal": e.legal, "why": e.why} for e in self.edges],
            "strategies": [self._row_dict(row) for row in sorted_rows(self.rows)],
            "refused": {strategy.name: why for strategy, why in self.refused.items()},
            "not_measured": {strategy.name: why for strategy, why in self.unmeasured.items()},
            "rounds_measured": [_measurement_dict(one) for one in self.measurements],
            "notes": self.notes,
            "interrupted": self.interrupted,
        }

    def _row_dict(self, row):
        found = {
            **strategy_dict(row.strategy),
            "throughput": row.rate._asdict(),
            "preparation_s": row.preparation._asdict(),
            "storage_bytes": row.storage._asdict(),
            "cold": row.cold.mid or None,
            "warm": row.warm.mid or None,
            "memory": row.memory.mid or None,
            "cache_memory": row.memory_bytes or None,
            "rounds": len(row.values),
            "throughput_mean": statistics.fmean(row.values),
            "throughput_sd": sd(row.values),
            "preparation_cpu_s": row.cpu_seconds,
            "score": row.score,
            "pareto": row.front,
            "why_not": row.why_not or None,
            "left_race": row.why_out or None,
        }
        if isinstance(self.objective, Prices):
            found["money"] = self.objective.money(row.metrics)
        return found

    def as_csv(self):
        """A line for each strategy: the three metrics with mean and standard deviation of the rounds."""
        out = io.StringIO()
        columns = [
            "strategy",
            "cut",
            "layout",
            "codec",
            "cache",
            "throughput",
            "throughput_low",
            "throughput_high",
            "throughput_mean",
            "throughput_sd",
            "rounds",
            "preparation_s",
            "preparation_cpu_s",
            "storage_bytes",
            "cold",
            "warm",
            "memory",
            "cache_memory",
            "score",
            "pareto",
            "chosen",
        ]
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        for row in sorted_rows(self.rows):
            s = strategy_dict(row.strategy)
            writer.writerow(
                [
                    s["strategy"],
                    s["cut"],
                    s["layout"],
                    s["codec"],
                    s["cache"],
                    *_rounded(row.rate.mid, row.rate.low, row.rate.high, statistics.fmean(row.values), sd(row.values)),
                    len(row.values),
                    *_rounded(
                        row.preparation.mid,
                        row.cpu_seconds,
                        row.storage.mid,
                        row.cold.mid,
                        row.warm.mid,
                        row.memory.mid,
                        row.memory_bytes,
                        row.score,
                    ),
                    int(row.front),
                    int(row.strategy == self.chosen),
                ]
            )
        return out.getvalue()

    def log_csv(self):
        """A line for each epoch that was measured, with what the machine did meanwhile."""
        out = io.StringIO()
        names = sorted({name for one in self.measurements for name in one.epoch.resources})
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["strategy", "mode", "round", "samples", "seconds", "samples_per_s", "whole", *names])
        for one in self.measurements:
            epoch = one.epoch
            writer.writerow(
                [
                    one.strategy.name,
                    one.mode,
                    one.round,
                    epoch.samples,
                    *_rounded(epoch.seconds, epoch.rate),
                    int(epoch.whole),
                    *_rounded(*(epoch.resources.get(name) for name in names)),
                ]
            )
        return out.getvalue()


def strategy_dict(strategy):
    """A strategy, as values for JSON."""
    material = strategy.material
    return {
        "strategy": strategy.name,
        "stages": material.stages,
        "cut": material.label,
        "layout": material.layout,
        "codec": material.codec,
        "cache": strategy.cache,
        "order": list(material.order),
    }


def sorted_rows(rows):
    """Best first; what cannot be chosen at the end."""
    return sorted(rows, key=lambda row: (row.score is None, -(row.score or 0.0), -row.rate.mid))


def sd(values):
    """The standard deviation of rounds; None: there was one."""
    return statistics.stdev(values) if len(values) > 1 else None


def _measurement_dict(one):
    epoch = one.epoch
    return {
        "strategy": one.strategy.name,
        "mode": one.mode,
        "round": one.round,
        "samples": epoch.samples,
        "seconds": epoch.seconds,
        "samples_per_s": epoch.rate,
        "whole": epoch.whole,
        "resources": epoch.resources,
    }


def _rounded(*values):
    return ["" if value is None else f"{value:.6g}" if isinstance(value, float) else value for value in values]
