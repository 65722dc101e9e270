"""What happened in a run, read from its trace: snapshots, flow, decisions, spans of work, events.

    loader = pipe.loader(batch_size=64, trace="run.drtrace")
    ...
    run = drapps.trace.read("run.drtrace")
    slowest = sorted(run.spans, key=lambda span: span.begin - span.end)[:10]

All times are seconds of time.monotonic() in the process that wrote it.
"""

import contextlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from drapps import _core
from drapps.monitor import Snapshot
from drapps.sched import Decision

LONGEST = 1000  # characters of a text in an event


class Flow(NamedTuple):
    """What a pipeline had done by then, and where it stood: see drapps.sched.flows()."""

    time: float
    values: dict[str, float]


class Span(NamedTuple):
    """Something that took time: "read" and "work" of a sample; "finish", "batch", "wait" and "step" of a batch."""

    kind: str
    begin: float
    end: float
    thread: int  # worker 1, 2, ...; fetcher -1, -2, ...; 0: a consumer, or not known
    epoch: int
    batch: int
    position: int
    id: int
    bytes: int
    cost: float  # predicted; 0: not known
    slow: bool  # went through the slow lane
    key: str  # name of the sample, its end if it is long
    slot: int = 0  # place in the batch; of a batch: its samples


class Replayed(NamedTuple):
    """A decision's reward as it was written, and as it follows from the terms and weights that were."""

    number: int
    logged: float
    recomputed: float

    @property
    def difference(self) -> float:
        """0, but for rounding, unless the trace was changed or the formula was."""
        return abs(self.logged - self.recomputed)


class Trace:
    """A whole trace in memory; see read()."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}  # the run: data, graph, settings, machine, clock
        self.snapshots: list[Snapshot] = []
        self.flow: list[Flow] = []
        self.decisions: list[Decision] = []
        self.knobs: list[tuple[float, dict[str, float]]] = []  # all of them after each decision
        self.spans: list[Span] = []
        self.events: list[dict[str, Any]] = []  # each with "t" and "event"
        self._rewards: list[float] = []

    @property
    def ended(self) -> str | None:
        """Why the trace ends: "closed", "limit" (of its size), or None: the process was killed, or still writes."""
        last = self.events[-1] if self.events else {}
        return last.get("reason") if last.get("event") == "end" else None

    @property
    def missing(self) -> dict[str, int]:
        """Records that found no room while they were written ("lost"), and spans left out by choice ("left_out")."""
        told = [event for event in self.events if event["event"] == "missing"]
        return {name: told[-1][name] if told else 0 for name in ("lost", "left_out")}

    def replay(self) -> list[Replayed]:
        """Computes each decision's reward again."""
        return [Replayed(d.number, d.reward, again) for d, again in zip(self.decisions, self._rewards)]

    def order(self, epoch: int = 0) -> list[list[int]]:
        """The ids of each batch of an epoch, as they were delivered: a loader with given_order=True makes them again.

        Needs the spans of all samples (trace_spans=float("inf")).
        """
        if any(self.missing.values()):
            raise _core.StateError(f"the trace has not the spans of all samples (trace_spans=inf): {self.missing}")
        spans = [span for span in self.spans if span.epoch == epoch]
        made: dict[int, dict[int, int]] = {}
        for span in spans:
            if span.kind == "work":
                made.setdefault(span.batch, {})[span.slot] = span.id
        ids = [sample for batch in made.values() for sample in batch.values()]
        if len(set(ids)) < len(ids):
            raise _core.UnsupportedError("a sample came more than once: the trace does not say which time was which")
        waits = sorted((span for span in spans if span.kind == "wait"), key=lambda span: span.end)
        return [[made[span.batch][slot] for slot in sorted(made[span.batch])] for span in waits]

    def chrome(self, profile: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The trace as Chrome and Perfetto (ui.perfetto.dev) show it: json.dump it into a file.

        profile: a trace of torch.profiler from the same run, to be shown with it, on one clock.
        """
        from drapps.perfetto import chrome

        return chrome(self, profile)

    def _add(self, kind: str, *facts: Any) -> None:
        getattr(self, f"_add_{kind}")(*facts)

    def _add_meta(self, time_ns: int, text: str) -> None:
        self.meta = json.loads(text)

    def _add_snapshot(self, facts: tuple[Any, ...]) -> None:
        self.snapshots.append(Snapshot(facts))

    def _add_flow(self, time_ns: int, values: dict[str, float]) -> None:
        self.flow.append(Flow(time_ns * 1e-9, values))

    def _add_decision(self, facts: tuple[Any, ...], knobs: dict[str, float], reward: float) -> None:
        decision = Decision.of(facts)
        self.decisions.append(decision)
        self.knobs.append((decision.time, knobs))
        self._rewards.append(reward)

    def _add_span(self, kind: str, begin_ns: int, end_ns: int, *rest: Any) -> None:
        self.spans.append(Span(kind, begin_ns * 1e-9, end_ns * 1e-9, *rest))

    def _add_text(self, time_ns: int, text: str) -> None:
        self.events.append({"t": time_ns * 1e-9, **json.loads(text)})


def read(path: str | os.PathLike[str]) -> Trace:
    """Reads a trace, up to its last whole record if its writer was killed.

    Damage is a FormatError that names the byte where it begins.
    """
    trace = Trace()
    for record in _core.open_trace_reader(os.fspath(path)):
        trace._add(*record)
    if not trace.meta:
        raise _core.FormatError(f"{os.fspath(path)}: a trace that was cut off before its first record ends")
    return trace


def records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of a trace as dicts that JSON can say, one after the other, without all of them in memory."""
    for kind, *facts in _core.open_trace_reader(os.fspath(path)):
        yield {"kind": kind, **_PLAIN[kind](*facts)}


def tell(writer: Any, event: str, **members: Any) -> None:
    """Writes an event, with the present time, into a trace that is open (None: nowhere).  What is None is left out."""
    if writer is None:
        return
    said = {name: _short(value) for name, value in members.items() if value is not None}
    with contextlib.suppress(_core.StateError):  # another thread has closed it
        writer.text(time.monotonic_ns(), json.dumps({"event": event, **said}))


def _short(value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) else value


def warn_if_broken(told: dict[str, Any] | None) -> None:
    """Warns of a trace that could not be written to its end; told: what a loader's stats() say of it."""
    if told and told["error"]:
        warnings.warn(f"the run's {told['error']}; it holds what came before", RuntimeWarning, stacklevel=4)


def warn_if_renamed(asked: str | None, told: dict[str, Any] | None) -> None:
    """Warns of a trace that went to another file than was asked for."""
    if asked is not None and told and told.get("path", asked) != asked:
        text = f"trace: another loader writes {asked} now; this one writes {told['path']}"
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def _plain_snapshot(facts: tuple[Any, ...]) -> dict[str, Any]:
    snapshot = Snapshot(facts)
    return {"t": snapshot.time, "number": snapshot.number, "values": dict(snapshot), "levels": snapshot.levels,
            "modelled": sorted(snapshot.modelled), "cpu": snapshot.cpu}  # fmt: skip


def _plain_decision(facts: tuple[Any, ...], knobs: dict[str, float], reward: float) -> dict[str, Any]:
    row = Decision.of(facts)._asdict()
    return {"t": row.pop("time"), **row, "knobs": knobs}


def _plain_span(kind: str, begin_ns: int, end_ns: int, *rest: Any) -> dict[str, Any]:
    row = Span(kind, begin_ns * 1e-9, end_ns * 1e-9, *rest)._asdict()
    return {"t": row["end"], "span": row.pop("kind"), **row}


_PLAIN: dict[str, Callable[..., dict[str, Any]]] = {
    "meta": lambda time_ns, text: {"t": time_ns * 1e-9, "meta": json.loads(text)},
    "snapshot": _plain_snapshot,
    "flow": lambda time_ns, values: {"t": time_ns * 1e-9, "values": values},
    "decision": _plain_decision,
    "span": _plain_span,
    "text": lambda time_ns, text: {"t": time_ns * 1e-9, "text": json.loads(text)},
}
