"""The parts of a workload of `drapps bench loaders`."""

from typing import Any, NamedTuple
from collections.abc import Callable


class Case(NamedTuple):
    """A row of a workload's table: a loader with its arguments."""

    name: str
    loader: str  # one of LOADERS, or a name that only the workload knows
    arguments: dict[str, Any] = {}
    beside: str | None = None  # the case that ratios are relative to


class Column(NamedTuple):
    """A column of the table."""

    title: str
    key: str  # key in the result of `run`
    digits: int = 0


class Workload(NamedTuple):
    """A workload: `run(make, case, options)` does the work of a case once and returns its figures.

    `make` is the loader's class.  A figure "digest" must be the same in all runs; wrong samples raise.  `options` are
    numbers and texts with their defaults; `quick` has those of a trial that takes seconds.
    """

    title: str
    options: dict[str, Any]
    quick: dict[str, Any]
    cases: Callable[[dict], list]
    run: Callable[[Any, Case, dict], dict]
    columns: tuple
    ratio: str | None = None  # the figure whose ratio to `beside` is shown
    prepare: Callable[[dict, str], dict] | None = None  # prepare(options, scratch folder) is called once for all runs
    notes: Callable[[dict], list] | None = None  # lines below the table, from the result
    counted: bool = True  # whether `run` counts every sample
    partial: tuple = ()  # figures that only some cases have


def both(arguments, **more):
    """Return the cases of most workloads: torch and drapps with the same arguments."""
    return [Case("torch", "torch", {**arguments, **more}), Case("drapps", "drapps", {**arguments, **more}, "torch")]


def in_order_both_ways(arguments):
    """Return torch and drapps, each in order and in order of completion; ratios are relative to torch in order."""
    first = "torch, in order"
    cases = []
    for loader in ("torch", "drapps"):
        for in_order, words in ((True, "in order"), (False, "in_order=False")):
            name = f"{loader}, {words}"
            cases.append(Case(name, loader, {**arguments, "in_order": in_order}, None if name == first else first))
    return cases


def loader_class(name):
    """Return the class of a loader's name; None for a name that only the workload knows."""
    if name == "torch":
        from torch.utils.data import DataLoader
    elif name == "drapps":
        from drapps import DataLoader
    else:
        return None
    return DataLoader
