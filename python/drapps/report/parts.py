"""Sections of the page: the verdict, key figures, where the time goes, distributions, facts."""

import json

from drapps.report.charts import distribution, share_bar
from drapps.report.decisions import bound_class
from drapps.report.energy import energy
from drapps.report.figures import spread
from drapps.report.text import bytes_text, clock_text, count_text, escape, percent, time_text
from drapps.report.verdict import ADVICE, diagnose, headline, limits

SLOWEST = 20
LONGEST_FACT = 20_000  # characters of a graph or of settings that a page shows


def table(columns, rows, css=""):
    """A table; columns that begin with "#" hold numbers.  Cells are escaped."""
    number = [c.startswith("#") for c in columns]
    head = "".join(f'<th{" class=n" if n else ""}>{escape(c.lstrip("#"))}' for c, n in zip(columns, number))
    body = "".join("<tr>" + "".join(f'<td{" class=n" if n else ""}>{escape(v)}' for v, n in zip(row, number)) for row in rows)
    return f'<div class="scroll"><table class="{css}"><thead><tr>{head}</thead><tbody>{body}</tbody></table></div>'


def verdict(run):
    """The headline, for how long what limited the run, and what to do."""
    bound, sentence = headline(run)
    findings = "".join(
        f'<li><b><i class="dot b-{bound_class(f.name)}"></i>{escape(f.name)}</b>'
        f'{f" <span class=tag>{percent(f.share)} of the time</span>" if f.share else ""}'
        f" {escape(f.evidence)}.<br><span>{escape(f.advice)}</span></li>" for f in diagnose(run)
    )  # fmt: skip
    return f'<section class="verdict v-{bound_class(bound)}"><h2>{escape(sentence)}</h2>{_limit_bar(run)}<ul>{findings}</ul></section>'


def _limit_bar(run):
    found = sorted(limits(run).items(), key=lambda item: -item[1].seconds)
    whole = sum(limit.seconds for _, limit in found)
    if not whole:
        return ""
    shares = [(f"b-{bound_class(b)}", b, limit.seconds / whole) for b, limit in found]
    legend = "".join(f'<span><i class="dot {css}"></i>{escape(b)} {percent(share)}</span>' for css, b, share in shares)
    return f'{share_bar(shares, "what limited the run, by time")}<p class="legend">limited by: {legend}</p>'


def cards(run, grid):
    """The key figures."""
    shown = [_card(*card) for card in _card_rows(run, run.figures, grid) if card[1] is not None]
    if not shown:
        return ""
    return f'<section><h2>Key figures</h2><div class="cards">{"".join(shown)}</div></section>'


def _card(label, value, note=""):
    return f'<div class="card"><span>{escape(label)}</span><b>{escape(value)}</b><small>{escape(note)}</small></div>'


def _card_rows(run, f, grid):
    latency, power = f.latency, energy(run, grid)
    yield "throughput", _or_none(f.samples_per_s, "{} samples/s"), f"{count_text(f.samples)} samples, {count_text(f.batches)} batches in {time_text(f.seconds)}"
    yield "trainer waits", _share(f.wait_share), f"{time_text(f.wait_s)} waiting, {time_text(f.step_s)} in its steps"
    yield "accelerator utilisation", _share(f.accelerator), "step / (step + wait)"
    if latency:
        yield "batch latency, median", time_text(latency.p50), f"mean {time_text(latency.mean)}, p95 {time_text(latency.p95)}, p99 {time_text(latency.p99)}, max {time_text(latency.max)}"
    elif f.latency_mean is not None:
        yield "batch latency, mean", time_text(f.latency_mean), "no batch was traced by itself"
    yield "CPU of a sample", None if f.cpu_ms_per_sample is None else time_text(f.cpu_ms_per_sample / 1000), f"{time_text(f.cpu_s)} of CPU in all"
    yield from _machine_cards(run, f)
    yield "hardware utilisation", _share(f.efficiency), ", ".join(f"{k} {percent(v)}" for k, v in f.components.items())
    yield "resource imbalance", None if f.imbalance is None else f"{f.imbalance:.2f}", "standard deviation of these uses; 0 is even"
    if power:
        how = "modelled by CPU use" if power.modelled else "measured"
        parts = "CPU packages and GPUs" if power.gpu else "CPU packages alone"
        per = f", {power.kwh * 3.6e6 / f.samples:.3g} J a sample" if f.samples else ""
        yield "energy", f"{power.kwh * 1000:.3g} Wh", f"{power.kwh:.3g} kWh, {parts}, {how}, mean {power.watts:.3g} W{per}"
        yield "CO₂", f"{power.gco2:.3g} g", f"at {power.grid:g} g/kWh{' (world, 2023, Ember)' if power.grid == 481 else ''}; machine as a whole, no cooling"


def _machine_cards(run, f):
    for name, label in (("cpu_own", "own CPU"), ("cpu_foreign", "CPU of others"), ("cpu_total", "CPU in all")):
        use, level = f.use.get(name), f.level.get(name)
        if use:
            yield label, f"{use.mean:.2f} CPUs", f"{percent(level.mean) if level else '–'} of the machine, peak {use.peak:.2f}"
    for name, label in (("mem_used", "memory of the machine"), ("mem_own", "memory of the process"), ("gpu_memory", "GPU memory")):
        if f.use.get(name):
            yield label, bytes_text(f.use[name].mean), f"peak {bytes_text(f.use[name].peak)}"
    if f.use.get("io_wait"):
        pressure = f.use.get("pressure_io")
        yield "I/O wait", percent(f.level["io_wait"].mean), f"peak {percent(f.level['io_wait'].peak)}" + (f", some task waited for storage {percent(pressure.mean)} of the time" if pressure else "")
    if f.use.get("gpu_busy"):
        yield "GPU", percent(f.use["gpu_busy"].mean), f"idle {percent(1 - f.use['gpu_busy'].mean)}, peak {percent(f.use['gpu_busy'].peak)}"


def _share(share):
    return None if share is None else percent(share)


def _or_none(value, text):
    return None if value is None else text.format(count_text(value))


def where_time_goes(run):
    """Stages, ops, lanes, and the samples that took longest."""
    parts = [_stages(run), _ops(run), _lanes(run), _slowest(run)]
    inside = "".join(parts) or "<p>The trace has no spans of samples.</p>"
    return f'<section><h2>Where the time goes</h2><div class="columns">{inside}</div></section>'


def _stages(run):
    rows = []
    for kind, what in (("read", "a sample"), ("work", "a sample"), ("finish", "a batch"), ("batch", "a batch")):
        facts = spread(run.times(kind))
        if facts:
            rows.append((f"{kind}, {what}", count_text(facts.count), *map(time_text, facts[1:])))
    return f'<div class="wide"><h3>Stages, as traced</h3>{table(("stage", "#spans", "#mean", "#p50", "#p95", "#p99", "#max"), rows, "stages")}</div>' if rows else ""


def _ops(run):
    """What loader.profile said, where the trace has it."""
    ops = run.meta.get("ops")
    ops = ops.get("ops") if isinstance(ops, dict) else ops
    rows = [op for op in ops or () if isinstance(op, dict) and isinstance(op.get("us"), (int, float))]
    whole = sum(op["us"] for op in rows)
    if not whole:
        return ""
    cells = [(op.get("op", "?"), time_text(op["us"] / 1e6), percent(op["us"] / whole)) for op in rows]
    return f'<div><h3>Ops, each by itself</h3>{table(("op", "#a sample", "#share"), cells)}</div>'


def _lanes(run):
    rows, whole = [], sum(run.times("work")) or 1
    for name, slow in (("fast", False), ("slow", True)):
        times = sorted(s.end - s.begin for s in run.spans["work"] if s.slow == slow)
        if times:
            facts = spread(times)
            rows.append((name, count_text(facts.count), time_text(facts.p50), time_text(facts.max), percent(sum(times) / whole)))
    return f'<div><h3>Lanes</h3>{table(("lane", "#samples", "#median", "#longest", "#of the work"), rows)}</div>' if rows else ""


def _slowest(run):
    facts = spread(run.times("work"))
    if not facts:
        return ""
    longest = sorted(run.spans["work"], key=lambda s: s.begin - s.end)[:SLOWEST]
    rows = [(s.key or "–", s.id, s.epoch, s.batch, clock_text(s.begin - run.begin), time_text(s.end - s.begin), f"{(s.end - s.begin) / facts.p50:.1f} ×" if facts.p50 > 0 else "–",
             bytes_text(s.bytes) if s.bytes else "–", "slow" if s.slow else "fast") for s in longest]  # fmt: skip
    columns = ("sample", "#id", "#epoch", "#batch", "#at", "#took", "#of the median", "#bytes", "lane")
    return f'<div class="wide"><h3>Slowest samples</h3>{table(columns, rows, "keys")}</div>'


def distributions(run):
    """Batch latency and waiting."""
    charts = []
    for title, values in (("Batch latency", run.times("batch")), ("Waiting for a batch", run.times("wait"))):
        facts = spread(values)
        if facts:
            quantiles = f"median {time_text(facts.p50)}, p95 {time_text(facts.p95)}, p99 {time_text(facts.p99)}, longest {time_text(facts.max)}; {count_text(facts.count)} batches. The line is the share of batches up to there."
            charts.append(f"<figure><h3>{title}</h3>{distribution(values, facts, title)}<figcaption>{quantiles}</figcaption></figure>")
    return f'<section><h2>Distributions</h2><div class="columns">{"".join(charts)}</div></section>' if charts else ""


def facts(run):
    """What the trace says about itself and the run."""
    rows = [("recorded", f"{count_text(len(run.snapshots))} snapshots, {count_text(len(run.flows))} flow, {count_text(len(run.decisions))} decisions, "
             f"{count_text(sum(map(len, run.spans.values())))} spans, {count_text(len(run.events))} events")]  # fmt: skip
    if run.gaps:
        rows.append(("gaps", ", ".join(f"{clock_text(a - run.begin)} for {time_text(b - a)}" for a, b in run.gaps[:10])))
    absent = _absent(run)
    if absent:
        rows.append(("sensors not there", ", ".join(absent)))
    rows += [(key, _fact_text(value)) for key, value in sorted(run.meta.items()) if key not in ("tables", "ops")]
    body = "".join(f"<tr><th>{escape(key)}<td><pre>{escape(text[:LONGEST_FACT])}</pre>" for key, text in rows)
    return f'<section><h2>About this run</h2><div class="scroll"><table class="facts"><tbody>{body}</tbody></table></div></section>'


def _absent(run):
    """Sensors of the table that no snapshot has."""
    if not run.snapshots:
        return []
    from drapps.monitor import sensors

    seen = {name for s in run.snapshots for name in s}
    return [s.name for s in sensors() if s.name not in seen]


def _fact_text(value):
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)


def limit_name(run):
    """What limits a run, in a few words."""
    bound, _ = headline(run)
    return ADVICE.get(bound, (bound,))[0]
