"""Compares the rounds of a run with the aims, and makes the tables."""

from typing import NamedTuple

from benchmarks.experiments import adapt_tables
from benchmarks.experiments.ahead.ahead_figures import SETTLE
from benchmarks.experiments.monitor.monitor_findings import Finding, judged, side
from benchmarks.experiments.statistics import summary

MOST_STALL_CHANGED, MOST_STALL, MOST_HOARD = 0.02, 0.01, 1.5
PARTS = {"slow": "slow consumer", "change": f"the {SETTLE:g} s after it became twice as fast",
         "fast": "fast consumer, after that", "since": "all since the change"}  # fmt: skip


class Round(NamedTuple):
    """A run of a contender."""

    parts: dict  # by name: figures.Part
    doubled: float | None  # seconds until the depth doubled


def over(rounds, name, figure):
    """Return the summary of a figure of a part."""
    return summary([getattr(found.parts[name], figure) for found in rounds])


def findings(adaptive, held):
    """Return the findings.  adaptive: rounds of the policy; held: rounds with the depth that the
    slow consumer needs."""
    yield depth(adaptive)
    yield stall("since", "since then the consumer waits for less than 2 % of its time", adaptive, MOST_STALL_CHANGED)
    for name in ("slow", "fast"):
        yield stall(name, f"{PARTS[name]}: waits for 1 % of its time at most", adaptive, MOST_STALL)
        yield hoard(name, adaptive)
    yield spared(adaptive, held)


def depth(rounds):
    """Return the finding on the time until the depth doubled, in the slowest round."""
    seconds = [found.doubled for found in rounds]
    before, after = (over(rounds, name, "prefetch").mean for name in ("slow", "fast"))
    took = ", ".join("never" if s is None else f"{s:.1f} s" for s in seconds)
    return judged(f"a consumer becomes twice as fast: the depth doubles within {SETTLE:g} s",
                  f"from {before:.1f} batches after {took}; {after:.1f} at the end",
                  all(s is not None and s <= SETTLE for s in seconds), seconds=seconds)  # fmt: skip


def stall(name, aim, rounds, most):
    """Return the finding on the waiting of the consumer in a part."""
    found = over(rounds, name, "stall")
    return Finding(aim, _percent(found), side(found.low, found.high, most=most), found._asdict())


def hoard(name, rounds):
    """Return the finding on the buffered batches relative to the needed ones."""
    found = over(rounds, name, "hoard")
    buffered, need = (over(rounds, name, figure).mean for figure in ("buffered", "need"))
    return Finding(f"{PARTS[name]}: mean of buffered batches at most {MOST_HOARD:g} times what Little's law needs",
                   f"{adapt_tables.spread(found, 2)} times: {buffered:.1f} for {need:.1f}",
                   side(found.low, found.high, most=MOST_HOARD), found._asdict())  # fmt: skip


def spared(adaptive, held):
    """Return the finding on the additional waiting of the fast consumer with a fixed depth, from pairs of rounds."""
    more = summary([b.parts["fast"].stall - a.parts["fast"].stall for a, b in zip(adaptive, held, strict=True)])
    return Finding("with the depth held at what the slow consumer needs, the fast one waits longer",
                   f"by {_percent(more)} of its time", side(more.low, more.high, least=0.0),
                   more._asdict())  # fmt: skip


def _percent(found):
    """Return adapt_tables.spread in percent."""
    return f"{adapt_tables.spread(found._replace(**{k: 100 * v for k, v in found._asdict().items() if k != 'n'}), 2)} %"


def table(runs):
    """Return the table of the means of each part.  runs: {contender's name: rounds}."""
    columns = ("loader", "part", "waits", "batches/s", "latency", "need", "buffered", "of these ready", "prefetch",
               "readers")  # fmt: skip
    return adapt_tables.table(columns, [(name, title, *_row(rounds, part))
                                  for name, rounds in runs.items() for part, title in PARTS.items()])  # fmt: skip


def _row(rounds, part):
    def mean(figure):
        return over(rounds, part, figure).mean

    return (f"{mean('stall'):.2%}", f"{mean('rate'):.1f}", f"{1e3 * mean('latency'):.0f} ms",
            *(f"{mean(figure):.1f}" for figure in ("need", "buffered", "ready", "prefetch", "readers")))  # fmt: skip
