"""The findings of tests (aim, measurement, result), and their table."""

from typing import NamedTuple

from benchmarks.experiments import adapt_tables

KEPT, MISSED, OPEN, IMPOSSIBLE, FAILED = "kept", "missed", "not shown", "not possible here", "failed"


class NotPossible(Exception):
    """This machine lacks something that a test needs."""


class Finding(NamedTuple):
    """The result for one aim of a test."""

    aim: str
    measured: str
    result: str
    figures: dict  # for programs


def judged(aim, measured, kept, **figures):
    """Return a finding without statistics."""
    return Finding(aim, measured, KEPT if kept else MISSED, figures)


def side(low, high, least=float("-inf"), most=float("inf")):
    """Compare a confidence interval with bounds: "kept" if all of it is inside, "missed" if none of it is.

    >>> side(0.996, 1.001, least=0.995), side(0.99, 1.0, least=0.995), side(0.98, 0.99, least=0.995)
    ('kept', 'not shown', 'missed')
    """
    if least <= low and high <= most:
        return KEPT
    return MISSED if high < least or low > most else OPEN


def table(rows):
    """Return the table.  rows: (test's name, finding)."""
    columns = ("test", "aim", "measured", "result")
    return adapt_tables.table(columns, [(f"`{name}`", found.aim, found.measured, found.result) for name, found in rows])
