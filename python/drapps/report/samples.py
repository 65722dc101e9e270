"""The sections "where the time goes" (stages, ops, lanes, slowest samples) and distributions of latencies."""

from drapps.report.charts import distribution
from drapps.report.figures import spread
from drapps.report.markup import section, table, titled
from drapps.report.text import bytes_text, clock_text, count_text, escape, percent, time_text
from drapps.report.verdict import often_interrupted
from drapps.trace import busy_time

SLOWEST = 20
STAGES = {
    "read": "read a sample",
    "work": "decode and augment a sample",
    "finish": "collate a batch",
    "batch": "make a batch, from the begin of its first sample",
}


def where_time_goes(run):
    """Return the section."""
    parts = titled("Stages, as traced", _stages(run), "wide") + titled("Ops, each by itself", _ops(run))
    parts += titled("Lanes", _lanes(run)) + titled("Slowest samples", _slowest(run), "wide")
    if not parts:
        return section("Where the time goes", "<p>The trace has no spans of samples.</p>")
    return section("Where the time goes", f'<div class="columns">{parts}</div>')


def _stages(run):
    rows = []
    for kind, what in STAGES.items():
        facts = spread(run.times(kind))
        if facts:
            rows.append((what, count_text(facts.n), *map(time_text, facts[1:])))
    return table(("stage", "#spans", "#mean", "#p50", "#p95", "#p99", "#max"), rows, "stages") if rows else ""


def _ops(run):
    """Return the results of loader.profile, which the trace has from the closing of the loader or from the user."""
    written = [event.get("profile") for event in run.events if event.get("event") == "ops"]
    ops = written[-1] if written else run.meta.get("ops")
    ops = ops.get("ops") if isinstance(ops, dict) else ops
    known = [op for op in ops or () if isinstance(op, dict) and isinstance(op.get("us"), (int, float))]
    whole = sum(op["us"] for op in known)
    rows = [(op.get("op", "?"), time_text(op["us"] / 1e6), percent(op["us"] / whole)) for op in known if whole]
    return table(("op", "#a sample", "#share"), rows) if rows else ""


def _lanes(run):
    rows, whole = [], sum(run.busy_times) or 1
    for name, slow in (("fast", False), ("slow", True)):
        times = sorted(busy_time(s) for s in run.spans["work"] if s.slow == slow)
        facts = spread(times)
        if facts:
            texts = count_text(facts.n), time_text(facts.p50), time_text(facts.max), percent(sum(times) / whole)
            rows.append((name, *texts))
    return table(("lane", "#samples", "#median", "#longest", "#of the work"), rows) if rows else ""


def _slowest(run):
    facts = spread(run.busy_times)
    if not facts:
        return ""
    longest = sorted(run.spans["work"], key=busy_time, reverse=True)[:SLOWEST]
    columns = ("sample", "#took", "#CPU", "#of the median", "#bytes", "lane", "#id", "#epoch", "#batch", "#at")
    rows = table(columns, [_sample(run, s, facts.p50) for s in longest], "keys")
    return rows + f'<p class="note">{escape(_how_judged(run))}</p>'


def _how_judged(run):
    if run.tells_cpu:
        return "By CPU time; in the rest of a sample's time its thread waited, most likely for a CPU."
    others = run.figures.use.get("cpu_foreign")
    if others and often_interrupted(run):
        return (f"By the time from begin to end. Other programs used {others.mean:.2g} CPUs meanwhile: a sample may be "
                "here because its worker had no CPU, not because it is large.")  # fmt: skip
    return "By the time from begin to end."


def _sample(run, s, median):
    took, busy = s.end - s.begin, busy_time(s)
    times = f"{count_text(busy / median)} ×" if median > 0 else "–"
    size = bytes_text(s.bytes) if s.bytes else "–"
    at = clock_text(s.begin - run.begin)
    epoch = run.passes.number(s.epoch, s.end)
    cpu, lane = time_text(s.cpu) if s.cpu else "–", "slow" if s.slow else "fast"
    return s.key or "–", time_text(took), cpu, times, size, lane, s.id, epoch, s.batch, at


def distributions(run):
    """Return the section with the distributions of batch latency and of waiting."""
    charts = _chart(run, "batch", "Batch latency") + _chart(run, "wait", "Waiting for a batch")
    return section("Distributions", f'<div class="columns">{charts}</div>') if charts else ""


def _chart(run, kind, title):
    facts = spread(run.times(kind))
    if not facts:
        return ""
    p50, p95, p99, longest = map(time_text, facts[2:])
    text = f"{count_text(facts.n)} batches: median {p50}, p95 {p95}, p99 {p99}, longest {longest}."
    chart = distribution(run.times(kind), facts, title)
    return titled(title, f'{chart}<p class="note">{text} The line is the share of batches up to each time.</p>')
