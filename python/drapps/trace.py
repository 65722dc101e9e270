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
from collections.abc import Callable, Iterable, Iterator
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
    thread: int  # worker 1, 2, ...; reader -1, -2, ...; 0: a consumer, or not known
    epoch: int
    batch: int
    position: int
    id: int
    bytes: int
    cost: float  # predicted; 0: not known
    slow: bool  # went through the slow lane
    key: str  # name of the sample, its end if it is long
    slot: int = 0  # place in the batch; of a batch: its samples
    cpu: float = 0.0  # "work": CPU time of its thread, in seconds; 0: not known, as of worker processes


def busy_time(span: Span) -> float:
    """Seconds for which a span had a CPU; where that is not known, from its begin to its end."""
    return span.cpu or max(0.0, span.end - span.begin)


class Replayed(NamedTuple):
    """A decision's reward as it was written, and as it follows from the terms and weights that were."""

    number: int
    logged: float
    recomputed: float

    @property
    def difference(self) -> float:
        """0, but for rounding, unless the trace was changed or the formula was."""
        return abs(self.logged - self.recomputed)


class Passes:
    """The numbers of passes.  A drapps.DataLoader that runs natively names each by the seed of its draws ("epoch"), and
    tells the number beside it, in a "pass" event before the pass."""

    def __init__(self, events: Iterable[dict[str, Any]]) -> None:
        self._told: dict[int, list[dict[str, Any]]] = {}
        for event in events:
            if event.get("event") == "pass" and all(type(event.get(name)) is int for name in ("pass", "epoch")):
                self._told.setdefault(event["epoch"], []).append(event)

    def told(self, epoch: int, time: float) -> dict[str, Any]:
        """What was told of the pass that had this name at some time; {}: nothing, so that its name is its number."""
        told = self._told.get(epoch, []) if isinstance(epoch, int) else []
        before = [event for event in told if event["t"] <= time]
        return before[-1] if before else {}

    def number(self, epoch: int, time: float) -> int:
        """0, 1, 2, ..."""
        return int(self.told(epoch, time).get("pass", epoch))


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

    @property
    def passes(self) -> Passes:
        """The numbers of the passes that spans and events name by `epoch`."""
        return Passes(self.events)

    def replay(self) -> list[Replayed]:
        """Computes each decision's reward again."""
        return [Replayed(d.number, d.reward, again) for d, again in zip(self.decisions, self._rewards)]

    def order(self, epoch: int = 0) -> list[list[int]]:
        """The ids of each batch of an epoch, as they were delivered: a loader with pushed_order=True makes them again.

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
        self.meta = _meta(text)

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
        self.spans.append(_span(kind, begin_ns, end_ns, *rest))

    def _add_text(self, time_ns: int, text: str) -> None:
        event = {**_event(text), "t": time_ns * 1e-9}
        self.events.append(event)
        if event.get("event") == "pass":  # of a loader whose order comes from Python: what was asked for there
            settings, asked = self.meta.get("settings"), event.pop("settings", None)
            known = settings if isinstance(settings, dict) else {}
            known = {name: value for name, value in known.items() if name != "pushed_order"}
            self.meta["settings"] = known | (asked if isinstance(asked, dict) else {})


def read(path: str | os.PathLike[str]) -> Trace:
    """Reads a trace, up to its last whole record if its writer was killed.

    Damage is a FormatError that names the byte where it begins.
    """
    trace = Trace()
    for record in _core.open_trace_reader(os.fspath(path)):
        with _named(path):
            trace._add(*record)
    if not trace.meta:
        raise _core.FormatError(f"{os.fspath(path)}: a trace that was cut off before its first record ends")
    return trace


def records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of a trace as dicts that JSON can say, one after the other, without all of them in memory."""
    for kind, *facts in _core.open_trace_reader(os.fspath(path)):
        with _named(path):
            record = {"kind": kind, **_PLAIN[kind](*facts)}
        yield record


# --- checks: the sums of a file say that it is whole, not what its JSON holds ---


@contextlib.contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise _core.FormatError(f"{os.fspath(path)}: a record is damaged: {error}") from None


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {text[:40]!r}")
    return value


def _meta(text: str) -> dict[str, Any]:
    meta = _object(text)
    _check(meta, "pid", int)
    _check(meta, "machine", dict)
    _check(meta, "clock", dict)
    for name in ("start_ns", "unix_ns"):
        _check(meta["clock"], name, int)
    return meta


def _event(text: str) -> dict[str, Any]:
    event = _object(text)
    _check(event, "event", str)
    if event["event"] == "missing":
        for name in ("lost", "left_out"):
            _check(event, name, int)
    return event


def _check(table: dict[str, Any], name: str, kind: type) -> None:
    value = table.get(name)
    if not isinstance(value, kind) or (kind is int and not -(2**63) <= value < 2**63):
        raise ValueError(f"{name} must be of type {kind.__name__}, got {str(value)[:40]!r}")


# --- writing ---


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


def _span(kind: str, begin_ns: int, end_ns: int, *rest: Any) -> Span:
    *facts, cpu_ns = rest
    return Span(kind, begin_ns * 1e-9, end_ns * 1e-9, *facts, cpu=cpu_ns * 1e-9)


def _plain_span(kind: str, begin_ns: int, end_ns: int, *rest: Any) -> dict[str, Any]:
    row = _span(kind, begin_ns, end_ns, *rest)._asdict()
    return {"t": row["end"], "span": row.pop("kind"), **row}


_PLAIN: dict[str, Callable[..., dict[str, Any]]] = {
    "meta": lambda time_ns, text: {"t": time_ns * 1e-9, "meta": _meta(text)},
    "snapshot": _plain_snapshot,
    "flow": lambda time_ns, values: {"t": time_ns * 1e-9, "values": values},
    "decision": _plain_decision,
    "span": _plain_span,
    "text": lambda time_ns, text: {"t": time_ns * 1e-9, "text": _event(text)},
}
