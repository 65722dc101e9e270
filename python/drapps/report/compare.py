"""Several runs side by side: a table of figures, and throughput against CPU cost."""

from drapps.report.charts import pareto
from drapps.report.energy import JOULES_PER_KWH, energy
from drapps.report.parts import limit_name
from drapps.report.text import bytes_text, count_text, escape, percent, time_text

# label, figure, how it is shown, which is better (max, min or None)
ROWS = (
    ("samples/s", lambda r, f: f.samples_per_s, count_text, max),
    ("trainer waits", lambda r, f: f.wait_share, percent, min),
    ("batch latency, median", lambda r, f: f.latency.p50 if f.latency else None, time_text, min),
    ("batch latency, p99", lambda r, f: f.latency.p99 if f.latency else None, time_text, min),
    ("CPU of a sample", lambda r, f: _scaled(f.cpu_ms_per_sample, 1e-3), time_text, min),
    ("own CPUs, mean", lambda r, f: _mean(f, "cpu_own"), "{:.2f}".format, min),
    ("memory of the process, peak", lambda r, f: f.use["mem_own"].peak if f.use.get("mem_own") else None, bytes_text, min),
    ("hardware utilisation", lambda r, f: f.efficiency, percent, max),
    ("resource imbalance", lambda r, f: f.imbalance, "{:.2f}".format, min),
    ("energy, J a sample", lambda r, f: _joules(r), "{:.3g}".format, min),
    ("decisions", lambda r, f: len(r.decisions), count_text, None),
)


def section(runs):
    """The comparison; runs are numbered as given."""
    head = "".join(f'<th class="n"><i class="dot run{i % 7}"></i>{i + 1} {escape(r.name)}' for i, r in enumerate(runs))
    limits = "".join(f'<td class="n">{escape(limit_name(r))}' for r in runs)
    rows = "".join(_row(row, runs) for row in ROWS)
    return f"""<section class="compare"><h2>{len(runs)} runs, side by side</h2>
<div class="scroll"><table><thead><tr><th>{head}</thead><tbody><tr><th>what limits it{limits}{rows}</tbody></table></div>
{_plot(runs)}</section>"""


def _row(row, runs):
    label, get, text, better = row
    values = [get(run, run.figures) for run in runs]
    known = [v for v in values if v is not None]
    if not known:
        return ""
    texts = ["–" if v is None else text(v) for v in values]
    best = text(better(known)) if better and len({text(v) for v in known}) > 1 else None
    return f"<tr><th>{escape(label)}" + "".join(f'<td class="n{" best" if t == best else ""}">{escape(t)}' for t in texts)


def _plot(runs):
    points = [(f"{i + 1} {run.name}", run.figures.samples_per_s, run.figures.cpu_ms_per_sample) for i, run in enumerate(runs)]
    points = [point for point in points if point[1] and point[2]]
    if not points:
        return ""
    return f"<figure><h3>Throughput against CPU cost</h3>{pareto(points)}<figcaption>Dots on the line are beaten by no other run in both.</figcaption></figure>"


def _mean(figures, name):
    return figures.use[name].mean if figures.use.get(name) else None


def _scaled(value, scale):
    return None if value is None else value * scale


def _joules(run):
    used = energy(run)
    return used.kwh * JOULES_PER_KWH / run.figures.samples if used and run.figures.samples else None
