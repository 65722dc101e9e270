"""Facts from a trace, without other runs to compare with."""

import math
from itertools import pairwise

from drapps.profile.facts import Facts
from drapps.profile.host import mean
from drapps.profile.probe import FILE_FORMATS
from drapps.trace import busy_time

SUMS = ("samples", "batches", "wait", "step", "worked", "read", "work", "cpu", "delay", "bytes_read", "slow",
        "slow_work")
SENSORS = ("cpu_own", "cpu_foreign", "cpu_steal", "throttled", "disk_busy", "disk_latency")


def facts_of_trace(trace):
    """Return the facts of a drapps.trace.Trace, from its flow, its snapshots and its spans of samples."""
    facts = Facts()
    if len(trace.flow) < 2:
        return facts
    grown = {name: _growth([record.values.get(name, 0.0) for record in trace.flow]) for name in SUMS}
    _note_flow(facts, grown)
    if trace.meta.get("kind") == "processes":
        _note_code(facts, grown, trace.events)
    last = trace.flow[-1].values
    if last.get("bytes_limit") and last.get("batch_bytes"):
        facts.ahead = last["bytes_limit"] // last["batch_bytes"]
    for name in SENSORS:
        setattr(facts, name, mean(trace.snapshots, name))
    _note_settings(facts, trace)
    slow = [span for span in trace.spans if span.kind == "work" and span.slow]
    facts.slow_key = max(slow, key=busy_time).key if slow else ""
    return facts


def _note_flow(facts, grown):
    facts.samples, facts.batches = int(grown["samples"]), int(grown["batches"])
    facts.seconds = grown["wait"] + grown["step"]
    if facts.seconds and facts.batches:
        facts.wait, facts.step = grown["wait"] / facts.seconds, grown["step"] / facts.batches
    worked, work = grown["worked"], grown["work"]
    if worked and work:
        facts.read, facts.work, facts.bytes = grown["read"] / worked, work / worked, grown["bytes_read"] / worked
        facts.slow_samples, facts.slow_load = grown["slow"] / worked, grown["slow_work"] / work
        facts.drain_cpu = grown["cpu"] / worked or None
    if facts.work and facts.drain_cpu:  # a worker in work that does not run waits for a CPU
        facts.delayed = max(0.0, 1 - facts.drain_cpu / facts.work)


def _note_code(facts, grown, events):
    """Note the waiting of code in worker processes: the time in which they neither ran nor waited for a CPU."""
    runnable = grown["cpu"] + grown["delay"]
    if not runnable or not grown["worked"]:
        return
    facts.delayed = grown["delay"] / runnable
    facts.blocked = max(0.0, grown["work"] - runnable) / grown["worked"]
    places = [event.get("where") for event in events if event.get("event") == "waits"]
    facts.blocked_in = str(places[-1] or "") if places else ""


def _growth(values):
    """Return the growth of a sum; a decrease means that the next pass restarted it."""
    known = [value for value in values if math.isfinite(value)]
    return sum(b - a if b >= a else b for a, b in pairwise(known))


def _note_settings(facts, trace):
    """Note the last values of the knobs, else those the loader was opened with."""
    settings = {**_table(trace.meta.get("settings")), **(trace.knobs[-1][1] if trace.knobs else {})}
    for name in ("workers", "readers", "prefetch"):
        if _number(settings.get(name)) is not None:
            setattr(facts, name, int(settings[name]))
    facts.cpus = _number(_table(trace.meta.get("machine")).get("cpus"))
    each = getattr(trace.snapshots[-1], "cpu", ()) if trace.snapshots else ()
    facts.host_cpus = float(len(each)) or None
    facts.files = trace.meta["format"] in FILE_FORMATS if "format" in trace.meta else None


# --- checks: a file may contain anything ---


def _table(value):
    return value if isinstance(value, dict) else {}


def _number(value):
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None
