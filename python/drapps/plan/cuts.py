"""The edges of a pipeline: between which of its stages samples could be stored, and why not at the others.

Of native ops the library says so (dr_graph_cuts).  A Python function ends the legal edges unless it is marked as
deterministic, and so does a filter: which samples an epoch has must be known before any of them is made.
"""

import json
from typing import NamedTuple

from drapps import _core
from drapps.cached import is_marked
from drapps.optable import TABLE, graph_json
from drapps.pipeline import Node, PythonStage

ENDS = {
    "random": "draws at random",
    "inexact": "may give other bytes on another machine",
    "batch": "works on whole batches",
}


class Edge(NamedTuple):
    """A place between two stages: `stages` of them are before it."""

    stages: int
    after: str  # the last of these; "": the samples as they are read
    why: str  # samples must not be stored there; "": they may
    fields: tuple = ()  # what would be stored: ({"name", "form", "bytes" where that is always the same}, ...)

    @property
    def legal(self):
        """Whether samples may be stored there."""
        return not self.why

    @property
    def label(self):
        """ "raw", or "after decode"."""
        return f"after {self.after}" if self.after else "raw"


def edges_of(pipe):
    """All edges of a pipeline, from before the first stage to after the last: a list of Edge."""
    n_native = next((i for i, stage in enumerate(pipe.stages) if isinstance(stage, PythonStage)), len(pipe.stages))
    edges = _native_edges(pipe, n_native)
    why = edges[-1].why if _ends_all(edges[-1]) else ""
    for i, stage in enumerate(pipe.stages[n_native:], n_native + 1):
        why = why or _why_ends(stage)
        edges.append(Edge(i, stage_name(stage), why))
    return edges


def stage_name(stage):
    """The op's name, or that of the function: "map(prepare)"."""
    if isinstance(stage, Node):
        return stage.op.name
    return f"{stage.kind}({getattr(stage.function, '__name__', type(stage.function).__name__)})"


def _native_edges(pipe, n):
    """Those of the first n stages."""
    graph = _core.graph_from_json(graph_json([stage.to_json() for stage in pipe.stages[:n]]))
    return [
        Edge(row["nodes"], row["after"], row["why"], tuple(row["fields"]))
        for row in json.loads(graph.cuts(pipe.dataset))
    ]


def _ends_all(edge):
    """Whether the reason is an op's, so that it holds for all later edges, too."""
    return any(edge.why.endswith(reason) for reason in ENDS.values())


def _why_ends(stage):
    """Why no edge after the stage is legal; "": it hinders none."""
    if isinstance(stage, Node):
        flags = TABLE[stage.op.name]["flags"]
        return next((f"{stage.op.name} {reason}" for flag, reason in ENDS.items() if flag in flags), "")
    if stage.kind == "filter":
        return f"{stage_name(stage)} decides which samples an epoch has"
    return "" if is_marked(stage.function) else f"{stage_name(stage)} is not marked as deterministic"
