"""Reads the trace of a run: snapshots, flow, decisions, spans of work, events.

    loader = pipe.loader(batch_size=64, trace="run.drtrace")
    ...
    run = drapps.trace.read("run.drtrace")
    slowest = sorted(run.spans, key=lambda span: span.begin - span.end)[:10]

All times are seconds of time.monotonic() in the process that wrote the trace.
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

LONGEST = 1000  # largest number of characters of a text in an event


class Flow(NamedTuple):
    """The counters and gauges of a pipeline at one time; see drapps.sched.flows()."""

    time: float
    values: dict[str, float]


class Span(NamedTuple):
    """A time span: "read" or "work" of a sample; "finish", "batch", "wait" or "step" of a batch."""

    kind: str
    begin: float
    end: float
    thread: int  # worker 1, 2, ...; reader -1, -2, ...; 0: a consumer, or unknown
    epoch: int
    batch: int
    position: int
    id: int
    bytes: int
    cost: float  # predicted cost; 0: unknown
    slow: bool  # went through the slow lane
    key: str  # name of the sample; only its end if it is long
    slot: int = 0  # slot in the batch; of a batch: number of samples
    cpu: float = 0.0  # "work": CPU seconds of its thread; 0: unknown, as of worker processes


def busy_time(span: Span) -> float:
    """Return the CPU seconds of a span; if unknown, its whole duration."""
    return span.cpu or max(0.0, span.end - span.begin)


class Replayed(NamedTuple):
    """A decision's reward as logged, and as recomputed from its terms and weights."""

    number: int
    logged: float
    recomputed: float

    @property
    def difference(self) -> float:
        """0, up to rounding, unless the trace or the formula was changed."""
        return abs(self.logged - self.recomputed)


class Passes:
    """The numbers of passes.

    A native drapps.DataLoader identifies a pass by its random seed ("epoch"); a "pass" event before it has its number.
    """

    def __init__(self, events: Iterable[dict[str, Any]]) -> None:
        self._events: dict[int, list[dict[str, Any]]] = {}
        for event in events:
            if event.get("event") == "pass" and all(type(event.get(name)) is int for name in ("pass", "epoch")):
                self._events.setdefault(event["epoch"], []).append(event)

    def event_of(self, epoch: int, time: float) -> dict[str, Any]:
        """Return the "pass" event of an epoch at some time; {} if there is none, and the epoch is the number."""
        events = self._events.get(epoch, []) if isinstance(epoch, int) else []
        before = [event for event in events if event["t"] <= time]
        return before[-1] if before else {}

    def number(self, epoch: int, time: float) -> int:
        """0, 1, 2, ..."""
        return int(self.event_of(epoch, time).get("pass", epoch))


class Trace:
    """A whole trace in memory; see read()."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}  # data, graph, settings, machine, clock
        self.snapshots: list[Snapshot] = []
        self.flow: list[Flow] = []
        self.decisions: list[Decision] = []
        self.knobs: list[tuple[float, dict[str, float]]] = []  # (time, values of all knobs) after each decision
        self.spans: list[Span] = []
        self.events: list[dict[str, Any]] = []  # each with "t" and "event"
        self._rewards: list[float] = []

    @property
    def ended(self) -> str | None:
        """Why the trace ends: "closed", "limit" (of its size), or None: the process was killed, or is still writing."""
        last = self.events[-1] if self.events else {}
        return last.get("reason") if last.get("event") == "end" else None

    @property
    def missing(self) -> dict[str, int]:
        """The numbers of records dropped because the buffer was full ("lost"), and of spans not
        sampled ("left_out")."""
        found = [event for event in self.events if event["event"] == "missing"]
        return {name: found[-1][name] if found else 0 for name in ("lost", "left_out")}

    @property
    def passes(self) -> Passes:
        """The numbers of the passes that spans and events identify by `epoch`."""
        return Passes(self.events)

    def replay(self) -> list[Replayed]:
        """Recompute each decision's reward."""
        return [Replayed(d.number, d.reward, again) for d, again in zip(self.decisions, self._rewards)]

    def order(self, epoch: int = 0) -> list[list[int]]:
        """Return the ids of each batch of an epoch, as delivered: a loader with pushed_order=True can repeat them.

        Needs the spans of all samples (trace_spans=float("inf")).
        """
        if any(self.missing.values()):
            raise _core.StateError(f"the trace lacks the spans of some samples (needs trace_spans=inf): {self.missing}")
        spans = [span for span in self.spans if span.epoch == epoch]
        made: dict[int, dict[int, int]] = {}
        for span in spans:
            if span.kind == "work":
                made.setdefault(span.batch, {})[span.slot] = span.id
        ids = [sample for batch in made.values() for sample in batch.values()]
        if len(set(ids)) < len(ids):
            raise _core.UnsupportedError(
                "a sample occurred more than once: the trace does not tell the occurrences apart"
            )
        waits = sorted((span for span in spans if span.kind == "wait"), key=lambda span: span.end)
        return [[made[span.batch][slot] for slot in sorted(made[span.batch])] for span in waits]

    def chrome(self, profile: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Return the trace in the format of Chrome and Perfetto (ui.perfetto.dev): json.dump it into a file.

        profile: a trace of torch.profiler from the same run, to be shown together on one clock.
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
        if event.get("event") == "pass":  # settings of a loader whose order comes from Python
            settings, asked = self.meta.get("settings"), event.pop("settings", None)
            known = settings if isinstance(settings, dict) else {}
            known = {name: value for name, value in known.items() if name != "pushed_order"}
            self.meta["settings"] = known | (asked if isinstance(asked, dict) else {})


def read(path: str | os.PathLike[str]) -> Trace:
    """Read a trace; if its writer was killed, up to the last complete record.

    Damage is a FormatError that names the byte where it begins.
    """
    trace = Trace()
    for record in _core.open_trace_reader(os.fspath(path)):
        with _named(path):
            trace._add(*record)
    if not trace.meta:
        raise _core.FormatError(f"{os.fspath(path)}: the trace ends within its first record")
    return trace


def records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of a trace as JSON-compatible dicts, without loading all of them into memory."""
    for kind, *facts in _core.open_trace_reader(os.fspath(path)):
        with _named(path):
            record = {"kind": kind, **_PLAIN[kind](*facts)}
        yield record


# --- checks: the checksums of a file do not cover the meaning of its JSON ---


@contextlib.contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise _core.FormatError(f"{os.fspath(path)}: a record is damaged: {error}") from None


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"the text must be a JSON object, got {text[:40]!r}")
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
    too_large = isinstance(value, int) and not -(2**63) <= value < 2**63
    if not isinstance(value, kind) or too_large:
        raise ValueError(f"{name} must be of type {kind.__name__}, got {str(value)[:40]!r}")


# --- writing ---


def tell(writer: Any, event: str, **members: Any) -> None:
    """Write an event with the present time into an open trace (None: nothing).  Values that are None are left out."""
    if writer is None:
        return
    said = {name: _short(value) for name, value in members.items() if value is not None}
    with contextlib.suppress(_core.StateError):  # another thread has closed it
        writer.text(time.monotonic_ns(), json.dumps({"event": event, **said}))


def _short(value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) else value


def warn_if_broken(status: dict[str, Any] | None) -> None:
    """Warn about a trace that could not be written completely.  status: the trace's part of a loader's stats()."""
    if status and status["error"]:
        warnings.warn(f"the run's {status['error']}; it is complete up to there", RuntimeWarning, stacklevel=4)


def warn_if_renamed(asked: str | None, status: dict[str, Any] | None) -> None:
    """Warn about a trace that was written to another file than asked for."""
    if asked is not None and status and status.get("path", asked) != asked:
        text = f"trace: another loader writes {asked} now; this one writes {status['path']}"
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
    return Span._make((kind, begin_ns * 1e-9, end_ns * 1e-9, *facts, cpu_ns * 1e-9))


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
