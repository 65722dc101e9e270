"""Exports a trace for Chrome and Perfetto: threads as tracks, batches as bars, numbers as curves, and arrows from
samples to their batch and from batches to the consumer.

The clock is that of torch.profiler's traces: Unix time, in microseconds after their `baseTimeNanoseconds`.  A drapps
trace begins with the monotonic clock and the Unix time of the same moment.
"""

import json
import math

from drapps.sched import changes_text

MOST_PROCESSES = 1 << 22  # above every process id of Linux
CONSUMER = "consumer"
OF_SAMPLES = ("read", "work")  # spans of one worker never overlap
BATCHES = 10_000  # the first track of batches
PIPELINE = "pipeline"
GROUPS = {  # prefixes of the names of sensors
    "CPU": ("cpu_", "io_wait", "quota_", "throttled", "power", "own_threads"),
    "pressure": ("pressure_",),
    "memory": ("mem_",),
    "storage": ("disk_",),
    "network": ("net_",),
    "GPU": ("gpu_",),
    PIPELINE: ("fill_", "service_", "batch_latency", "consumer_wait", "cache_", "in_flight"),
}


def chrome(trace, profile=None):
    """Return the dict to write as JSON."""
    torch = _load(profile)
    base_ns = torch.get("baseTimeNanoseconds", 0)
    clock = trace.meta["clock"]
    shift_us = (clock["unix_ns"] - clock["start_ns"] - base_ns) / 1000
    writer = _Writer(_process_number(trace, torch), shift_us, trace.passes)
    writer.names(trace)
    writer.spans(trace.spans)
    writer.curves(trace)
    writer.instants(trace)
    return {**torch, "displayTimeUnit": "ms", "traceEvents": [*torch.get("traceEvents", []), *writer.events],
            "drapps": trace.meta}  # fmt: skip


def _load(profile):
    if profile is None:
        return {}
    from drapps import _core

    with open(profile, encoding="utf-8") as file:
        try:
            torch = json.load(file)
        except ValueError as error:
            raise _core.FormatError(f"{profile}: not a JSON file of torch.profiler: {error}") from None
    if not isinstance(torch, dict) or "baseTimeNanoseconds" not in torch or "traceEvents" not in torch:
        raise _core.FormatError(f"{profile}: not a trace of torch.profiler: it has no baseTimeNanoseconds")
    return torch


def _process_number(trace, torch):
    """Return the process id of the trace; beside torch's tracks an unused one, to keep the threads of the two apart."""
    pid = trace.meta["pid"]
    return pid + MOST_PROCESSES if torch else pid


class _Writer:
    """Collects the events of one loader, in its process and in one for the machine."""

    def __init__(self, pid, shift_us, passes):
        self._pid, self._machine, self._shift_us = pid, pid + 2 * MOST_PROCESSES, shift_us
        self._passes = passes
        self._last = {}  # last value of each curve, which is flat until its next event
        self.events = []

    def _put(self, phase, name, time, **more):
        self.events.append({"ph": phase, "name": name, "pid": self._pid, "ts": time * 1e6 + self._shift_us, **more})

    # --- tracks ---

    def names(self, trace):
        self._name("process_name", self._pid, 0, name=f"drapps: {trace.meta.get('data', 'loader')}")
        self._name("process_name", self._machine, 0, name="machine")
        for thread in {span.thread for span in trace.spans if span.kind != "batch"} | {0}:
            self._name_track(_track(thread), _thread_name(thread))

    def _name_track(self, track, name):
        self._name("thread_name", self._pid, track, name=name)
        self._name("thread_sort_index", self._pid, track, sort_index=track)

    def _name(self, what, pid, track, **facts):
        self.events.append({"ph": "M", "name": what, "pid": pid, "tid": track, "args": facts})

    # --- spans and arrows ---

    def spans(self, spans):
        batches = _lanes([span for span in spans if span.kind == "batch"])
        for track in sorted({track for _, track in batches}):
            self._name_track(track, "batches")
        for span, track in [(span, _track(span.thread)) for span in spans if span.kind != "batch"] + batches:
            name = f"batch {span.batch}" if span.kind == "batch" else span.kind
            self._put("X", name, span.begin, tid=track, dur=(span.end - span.begin) * 1e6, cat=span.kind,
                      args={"epoch": self._passes.number(span.epoch, span.end), **_arguments(span)})  # fmt: skip
        for number, (name, places) in enumerate(_arrows(spans, batches), 1):
            self._arrow(number, name, places)

    def _arrow(self, number, name, places):
        """Add an arrow from each (span, track) to the next; its events lie within those spans."""
        time = -math.inf
        for i, (span, track) in enumerate(places):
            time = max(time, span.begin)
            phase = {0: "s", len(places) - 1: "f"}.get(i, "t")
            self._put(phase, name, time, tid=track, cat="flow", id=number, **({"bp": "e"} if phase == "f" else {}))

    # --- curves ---

    def curves(self, trace):
        for snapshot in trace.snapshots:
            for name in snapshot:
                group = group_of(name)
                pid = self._pid if group == PIPELINE else self._machine
                self._curve(f"{group}: {name}", snapshot.time, snapshot[name], pid)
        for flow in trace.flow:
            for name in ("ready", "open", "active", "fetched", "parked"):
                self._curve(f"{PIPELINE}: {name}", flow.time, flow.values[name], self._pid)
        for before, flow in zip(trace.flow, trace.flow[1:]):
            passed = flow.time - before.time
            if passed > 0:
                self._curve(f"{PIPELINE}: samples/s", flow.time,
                            (flow.values["samples"] - before.values["samples"]) / passed, self._pid)  # fmt: skip
        for time, knobs in trace.knobs:
            for name, value in knobs.items():
                self._curve(f"knob: {name}", time, value, self._pid)

    def _curve(self, name, time, value, pid):
        if math.isfinite(value) and self._last.get(name) != value:  # JSON has only finite numbers
            self._last[name] = value
            self._put("C", name, time, pid=pid, args={"value": value})

    # --- marks ---

    def instants(self, trace):
        for decision in trace.decisions:
            changes = {name: f"{a:g} -> {b:g}" for name, (a, b) in decision.changes.items()}
            name = changes_text(decision.changes) or f"decision {decision.number}"
            self._put("i", name, decision.time, tid=0, s="p", cat="decision",
                      args={"number": decision.number, "limited by": decision.bound, "reason": decision.reason,
                            "reward": _finite(decision.reward), "guarded": decision.guarded, **changes})  # fmt: skip
        for event in trace.events:
            more = {name: value for name, value in event.items() if name not in ("t", "event", "pass")}
            if "epoch" in more:
                number = self._passes.number(more["epoch"], event["t"])
                more |= {"epoch": number} if number == more["epoch"] else {"epoch": number, "seed": more["epoch"]}
            worker = event.get("worker") if event["event"] == "died" else None
            place = {"tid": _track(worker), "s": "t"} if isinstance(worker, int) else {"tid": 0, "s": "p"}
            self._put("i", event["event"], event["t"], **place, cat="event", args=more)


# --- tracks ---


def _track(thread):
    """Return the number of a thread's track.  Tracks are sorted by number: consumer, workers, readers, batches."""
    return thread if thread >= 0 else 1000 - thread


def _thread_name(thread):
    return CONSUMER if thread == 0 else f"worker {thread}" if thread > 0 else f"reader {-thread}"


def _lanes(batches):
    """Return [(span, track), ...]: batches overlap, so each is put on a track that is free then.  Arrows end only at
    spans of threads."""
    placed, ends = [], []
    for span in sorted(batches, key=lambda span: span.begin):
        lane = next((i for i, end in enumerate(ends) if end <= span.begin), len(ends))
        ends[lane : lane + 1] = [span.end]
        placed.append((span, BATCHES + lane))
    return placed


# --- arrows ---


def _arrows(spans, batches):
    """Yield (name, [(span, track), ...]): a sample's read, work and batch; a batch's end, wait and step."""
    made, reads = _by_batch(batches), {}
    for span in spans:
        key = span.epoch, span.batch, span.slot
        if span.kind == "read":
            reads[key] = span
        elif span.kind == "work":
            batch = _first(made, span, span.end)
            read = reads.pop(key, None)
            if batch:
                yield "sample", [*((s, _track(s.thread)) for s in (read, span) if s), batch]
    waits, steps = (_by_batch((s, _track(s.thread)) for s in spans if s.kind == kind) for kind in ("wait", "step"))
    for span, track in batches:
        wait = _first(waits, span, span.end)
        step = wait and _first(steps, span, wait[0].end)
        if wait:
            yield "batch", [(span, track), wait, *([step] if step else [])]


def _by_batch(places):
    """Return {(epoch, batch): [(span, track), ...]}, earliest end first.  Out of order, a number can occur twice."""
    found = {}
    for span, track in sorted(places, key=lambda place: place[0].end):
        found.setdefault((span.epoch, span.batch), []).append((span, track))
    return found


def _first(places, span, end):
    """Return the first of the same batch that ended at that time or later; None if the trace does not have it."""
    return next((place for place in places.get((span.epoch, span.batch), ()) if place[0].end >= end), None)


# --- numbers ---


def group_of(sensor):
    """Return the group of a sensor: one of GROUPS, or "machine"."""
    return next((group for group, names in GROUPS.items() if sensor.startswith(names)), "machine")


def _arguments(span):
    facts = {"batch": span.batch}
    if span.kind in OF_SAMPLES:
        facts |= {"sample": span.key or span.id, "position": span.position, "slot": span.slot, "bytes": span.bytes,
                  "cost": _finite(span.cost), "lane": "slow" if span.slow else "fast"}  # fmt: skip
        if span.cpu:
            facts["cpu_ms"] = span.cpu * 1e3
    elif span.kind != "step":
        facts |= {"samples": span.slot, "bytes": span.bytes}
    return facts


def _finite(value):
    return value if math.isfinite(value) else str(value)
