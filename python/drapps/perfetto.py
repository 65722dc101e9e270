"""A trace as Chrome and Perfetto show it: threads as tracks, batches as bars of their own, numbers as curves.

The clock is that of torch.profiler's traces: Unix time, in microseconds after their `baseTimeNanoseconds`.  A drapps
trace says at its begin what the monotonic clock and Unix time were at one moment.
"""

import json
import math

MOST_PROCESSES = 1 << 22  # Linux gives no higher number
CONSUMER = "consumer"
OF_SAMPLES = ("read", "work")  # spans of a worker, which never overlap there
SENSORS = ("cpu_total", "cpu_own", "cpu_foreign", "mem_used", "disk_bandwidth", "power", "in_flight")


def chrome(trace, profile=None):
    """The dict that json.dump turns into such a file."""
    torch = _load(profile)
    base_ns = torch.get("baseTimeNanoseconds", 0)
    clock = trace.meta["clock"]
    shift_us = (clock["unix_ns"] - clock["start_ns"] - base_ns) / 1000
    writer = _Writer(_process_number(trace, torch), shift_us)
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
    """The trace's own; beside torch's tracks one that no process has, so that the threads of the two are apart."""
    pid = trace.meta["pid"]
    return pid + MOST_PROCESSES if torch else pid


class _Writer:
    def __init__(self, pid, shift_us):
        self._pid, self._shift_us = pid, shift_us
        self.events = []

    def _put(self, phase, name, time, **more):
        self.events.append({"ph": phase, "name": name, "pid": self._pid, "ts": time * 1e6 + self._shift_us, **more})

    def names(self, trace):
        self._name("process_name", 0, f"drapps: {trace.meta.get('data', 'loader')}")
        threads = {span.thread for span in trace.spans if span.kind in OF_SAMPLES} | {0}
        for thread in threads:
            self._name("thread_name", _track(thread), _thread_name(thread))

    def _name(self, what, track, name):
        self.events.append({"ph": "M", "name": what, "pid": self._pid, "tid": track, "args": {"name": name}})

    def spans(self, spans):
        for span in spans:
            if span.kind in ("batch", "finish"):
                self._batch(span)
            else:
                self._put("X", span.kind, span.begin, tid=_track(span.thread), dur=(span.end - span.begin) * 1e6,
                          cat=span.kind, args=_arguments(span))  # fmt: skip

    def _batch(self, span):
        """Batches overlap: each has a bar of its own."""
        name = f"batch {span.batch}" if span.kind == "batch" else "finish"
        place = {"cat": "batch", "id": f"{span.epoch}.{span.batch}", "tid": 0}
        self._put("b", name, span.begin, **place, args=_arguments(span))
        self._put("e", name, span.end, **place)

    def curves(self, trace):
        for snapshot in trace.snapshots:
            for name in SENSORS:
                if name in snapshot:
                    self._curve(f"machine: {name}", snapshot.time, snapshot[name])
        for flow in trace.flow:
            for name in ("ready", "open", "active", "fetched", "parked"):
                self._curve(f"pipeline: {name}", flow.time, flow.values[name])
        for before, flow in zip(trace.flow, trace.flow[1:]):
            passed = flow.time - before.time
            if passed > 0:
                self._curve("pipeline: samples/s", flow.time,
                            (flow.values["samples"] - before.values["samples"]) / passed)  # fmt: skip
        for time, knobs in trace.knobs:
            for name, value in knobs.items():
                self._curve(f"knob: {name}", time, value)

    def _curve(self, name, time, value):
        if math.isfinite(value):  # JSON knows no others
            self._put("C", name, time, args={"value": value})

    def instants(self, trace):
        for decision in trace.decisions:
            changes = {name: f"{a:g} -> {b:g}" for name, (a, b) in decision.changes.items()}
            name = decision.reason or f"decision {decision.number}"
            self._put("i", name, decision.time, tid=0, s="p", cat="decision",
                      args={"number": decision.number, "bound": decision.bound, "reward": _finite(decision.reward),
                            "guarded": decision.guarded, **changes})  # fmt: skip
        for event in trace.events:
            more = {name: value for name, value in event.items() if name not in ("t", "event")}
            self._put("i", event["event"], event["t"], tid=0, s="p", cat="event", args=more)


def _track(thread):
    """Tracks are sorted by number: the consumer, workers, fetchers."""
    return thread if thread >= 0 else 1000 - thread


def _thread_name(thread):
    return CONSUMER if thread == 0 else f"worker {thread}" if thread > 0 else f"fetcher {-thread}"


def _arguments(span):
    facts = {"epoch": span.epoch, "batch": span.batch}
    if span.kind in OF_SAMPLES:
        facts |= {"sample": span.key or span.id, "position": span.position, "slot": span.slot, "bytes": span.bytes,
                  "cost": _finite(span.cost), "lane": "slow" if span.slow else "fast"}  # fmt: skip
    elif span.kind != "step":
        facts |= {"samples": span.slot, "bytes": span.bytes}
    return facts


def _finite(value):
    return value if math.isfinite(value) else str(value)
