"""Facts of a trace: what a run wrote down, without other runs to compare it with."""

import statistics

from drapps.profile.facts import Facts
from drapps.profile.host import mean
from drapps.profile.probe import SLOW_TIMES

SUMS = ("samples", "batches", "wait", "step", "worked", "read", "work", "cpu", "bytes_read")
SENSORS = ("cpu_own", "cpu_foreign", "cpu_steal", "throttled", "disk_busy", "disk_latency")


def facts_of_trace(trace):
    """Facts of a drapps.trace.Trace, by its flow, its snapshots and its spans of samples."""
    facts = Facts()
    if len(trace.flow) < 2:
        return facts
    first, last = trace.flow[0].values, trace.flow[-1].values
    _note_flow(facts, {name: last.get(name, 0.0) - first.get(name, 0.0) for name in SUMS}, last)
    for name in SENSORS:
        setattr(facts, name, mean(trace.snapshots, name))
    limits = trace.meta.get("limits", {})
    facts.host_cpus = limits.get("affinity_cpus")
    facts.cpus = min(filter(None, (facts.host_cpus, limits.get("quota_cpus"))), default=None)
    _note_settings(facts, trace)
    _note_samples(facts, [span for span in trace.spans if span.kind == "work"])
    return facts


def _note_flow(facts, grown, last):
    facts.samples, facts.batches = int(grown["samples"]), int(grown["batches"])
    facts.seconds = grown["wait"] + grown["step"]
    if facts.seconds and facts.batches:
        facts.wait, facts.step = grown["wait"] / facts.seconds, grown["step"] / facts.batches
    if grown["worked"]:
        facts.read, facts.work = grown["read"] / grown["worked"], grown["work"] / grown["worked"]
        facts.bytes = grown["bytes_read"] / grown["worked"]
        facts.drain_cpu = grown["cpu"] / grown["worked"] or None
    if last.get("bytes_limit") and last.get("batch_bytes"):
        facts.ahead = last["bytes_limit"] // last["batch_bytes"]
    if facts.work and facts.drain_cpu:  # a worker at work that does not run waits for a CPU
        facts.delayed = max(0.0, 1 - facts.drain_cpu / facts.work)


def _note_settings(facts, trace):
    """The knobs as they were last."""
    settings = dict(trace.meta.get("knobs", {}))
    for decision in trace.decisions:
        settings.update({knob: after for knob, (_, after) in decision.changes.items()})
    facts.workers, facts.prefetch = (_whole(settings.get(name)) for name in ("workers", "prefetch"))


def _whole(value):
    return None if value is None else int(value)


def _note_samples(facts, spans):
    """How many samples are far above the median, and what they take of the time."""
    times = [span.end - span.begin for span in spans]
    if not times or not sum(times):
        return
    limit = SLOW_TIMES * statistics.median(times)
    slow = [span for span in spans if span.end - span.begin >= limit]
    facts.slow_samples = len(slow) / len(spans)
    facts.slow_load = sum(span.end - span.begin for span in slow) / sum(times)
    facts.slow_key = max(slow, key=lambda span: span.end - span.begin).key if slow else ""
