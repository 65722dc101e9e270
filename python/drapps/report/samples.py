"""Where the time goes: stages, ops, lanes, the samples that took longest; how latencies are spread."""

from drapps.report.charts import distribution
from drapps.report.figures import spread
from drapps.report.markup import section, table, titled
from drapps.report.text import bytes_text, clock_text, count_text, percent, time_text

SLOWEST = 20


def where_time_goes(run):
    """The section."""
    parts = titled("Stages, as traced", _stages(run), "wide") + titled("Ops, each by itself", _ops(run))
    parts += titled("Lanes", _lanes(run)) + titled("Slowest samples", _slowest(run), "wide")
    if not parts:
        return section("Where the time goes", "<p>The trace has no spans of samples.</p>")
    return section("Where the time goes", f'<div class="columns">{parts}</div>')


def _stages(run):
    rows = []
    for kind, of in (("read", "sample"), ("work", "sample"), ("finish", "batch"), ("batch", "batch")):
        facts = spread(run.times(kind))
        if facts:
            rows.append((f"{kind}, a {of}", count_text(facts.count), *map(time_text, facts[1:])))
    return table(("stage", "#spans", "#mean", "#p50", "#p95", "#p99", "#max"), rows, "stages") if rows else ""


def _ops(run):
    """What loader.profile said: when the loader was closed, or whoever wrote the trace."""
    written = [event.get("profile") for event in run.events if event.get("event") == "ops"]
    ops = written[-1] if written else run.meta.get("ops")
    ops = ops.get("ops") if isinstance(ops, dict) else ops
    known = [op for op in ops or () if isinstance(op, dict) and isinstance(op.get("us"), (int, float))]
    whole = sum(op["us"] for op in known)
    rows = [(op.get("op", "?"), time_text(op["us"] / 1e6), percent(op["us"] / whole)) for op in known if whole]
    return table(("op", "#a sample", "#share"), rows) if rows else ""


def _lanes(run):
    rows, whole = [], sum(run.times("work")) or 1
    for name, slow in (("fast", False), ("slow", True)):
        times = sorted(max(0.0, s.end - s.begin) for s in run.spans["work"] if s.slow == slow)
        facts = spread(times)
        if facts:
            texts = count_text(facts.count), time_text(facts.p50), time_text(facts.max), percent(sum(times) / whole)
            rows.append((name, *texts))
    return table(("lane", "#samples", "#median", "#longest", "#of the work"), rows) if rows else ""


def _slowest(run):
    facts = spread(run.times("work"))
    if not facts:
        return ""
    longest = sorted(run.spans["work"], key=lambda s: s.begin - s.end)[:SLOWEST]
    columns = ("sample", "#id", "#epoch", "#batch", "#at", "#took", "#of the median", "#bytes", "lane")
    return table(columns, [_sample(run, s, facts.p50) for s in longest], "keys")


def _sample(run, s, median):
    took = s.end - s.begin
    times = f"{count_text(took / median)} ×" if median > 0 else "–"
    size = bytes_text(s.bytes) if s.bytes else "–"
    at = clock_text(s.begin - run.begin)
    return s.key or "–", s.id, s.epoch, s.batch, at, time_text(took), times, size, "slow" if s.slow else "fast"


def distributions(run):
    """The section with the spread of batch latency and of waiting."""
    charts = _chart(run, "batch", "Batch latency") + _chart(run, "wait", "Waiting for a batch")
    return section("Distributions", f'<div class="columns">{charts}</div>') if charts else ""


def _chart(run, kind, title):
    facts = spread(run.times(kind))
    if not facts:
        return ""
    p50, p95, p99, longest = map(time_text, facts[2:])
    text = f"{count_text(facts.count)} batches: median {p50}, p95 {p95}, p99 {p99}, longest {longest}."
    chart = distribution(run.times(kind), facts, title)
    return titled(title, f'{chart}<p class="note">{text} The line is the share of batches up to there.</p>')
