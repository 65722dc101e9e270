"""What a workload of `drapps bench loaders` is made of."""

from typing import Any, NamedTuple
from collections.abc import Callable


class Case(NamedTuple):
    """One row of a workload's table: a loader with its arguments."""

    name: str
    loader: str  # of LOADERS, or a word that the workload itself knows
    arguments: dict[str, Any] = {}
    beside: str | None = None  # the case whose figure is 1


class Column(NamedTuple):
    """A figure of the table."""

    title: str
    key: str  # in what `run` gives
    digits: int = 0


class Workload(NamedTuple):
    """`run(make, case, options)` does the work of one case once and gives its figures.

    `make` is the loader's class.  Among the figures may be "digest", which must be the same in all runs; wrong samples
    raise.  `options` are numbers and texts with their defaults; `quick` are those of a trial that takes seconds.
    """

    title: str
    options: dict[str, Any]
    quick: dict[str, Any]
    cases: Callable[[dict], list]
    run: Callable[[Any, Case, dict], dict]
    columns: tuple
    ratio: str | None = None  # the figure whose ratio to `beside` is told
    prepare: Callable[[dict, str], dict] | None = None  # (options, scratch folder): what is made once for all runs
    notes: Callable[[dict], list] | None = None  # lines below the table, from the result
    counted: bool = True  # whether `run` counts every sample
    partial: tuple = ()  # figures that only some cases have


def both(arguments, **more):
    """torch and drapps with the same arguments: the cases of most workloads."""
    return [Case("torch", "torch", {**arguments, **more}), Case("drapps", "drapps", {**arguments, **more}, "torch")]


def in_order_both_ways(arguments):
    """torch and drapps, each in order and in order of completion; all beside torch in order."""
    first = "torch, in order"
    cases = []
    for loader in ("torch", "drapps"):
        for in_order, words in ((True, "in order"), (False, "in_order=False")):
            name = f"{loader}, {words}"
            cases.append(Case(name, loader, {**arguments, "in_order": in_order}, None if name == first else first))
    return cases


def loader_class(name):
    """The class behind a loader's name; None for a word that only the workload knows."""
    if name == "torch":
        from torch.utils.data import DataLoader
    elif name == "drapps":
        from drapps import DataLoader
    else:
        return None
    return DataLoader
