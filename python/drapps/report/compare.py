"""Several runs side by side: a table of figures, and throughput against CPU cost."""

from drapps.report.charts import pareto
from drapps.report.energy import energy
from drapps.report.parts import limit_name
from drapps.report.text import bytes_text, count_text, escape, percent, time_text

# label, figure, how it is shown, which is better (max, min or None)
ROWS = (
    ("samples/s", lambda r, f, g: f.samples_per_s, count_text, max),
    ("trainer waits", lambda r, f, g: f.wait_share, percent, min),
    ("batch latency, median", lambda r, f, g: f.latency.p50 if f.latency else None, time_text, min),
    ("batch latency, p99", lambda r, f, g: f.latency.p99 if f.latency else None, time_text, min),
    ("CPU of a sample", lambda r, f, g: _scaled(f.cpu_ms_per_sample, 1e-3), time_text, min),
    ("own CPUs, mean", lambda r, f, g: _mean(f, "cpu_own"), "{:.2f}".format, min),
    ("memory of the process, peak", lambda r, f, g: f.use["mem_own"].peak if f.use.get("mem_own") else None, bytes_text, min),
    ("hardware utilisation", lambda r, f, g: f.efficiency, percent, max),
    ("resource imbalance", lambda r, f, g: f.imbalance, "{:.2f}".format, min),
    ("energy, J a sample", lambda r, f, g: _joules(r, f, g), "{:.3g}".format, min),
    ("decisions", lambda r, f, g: len(r.decisions), count_text, None),
)


def section(runs, figures, grid):
    """The comparison; runs are numbered as given."""
    head = "".join(f'<th class="n"><i class="dot run{i % 7}"></i>{i + 1} {escape(r.name)}' for i, r in enumerate(runs))
    limits = "".join(f'<td class="n">{escape(limit_name(r))}' for r in runs)
    rows = "".join(_row(row, runs, figures, grid) for row in ROWS)
    return f"""<section class="compare"><h2>{len(runs)} runs, side by side</h2>
<div class="scroll"><table><thead><tr><th>{head}</thead><tbody><tr><th>what limits it{limits}{rows}</tbody></table></div>
{_plot(runs, figures)}</section>"""


def _row(row, runs, figures, grid):
    label, get, text, better = row
    values = [get(r, f, grid) for r, f in zip(runs, figures)]
    known = [v for v in values if v is not None]
    if not known:
        return ""
    best = better(known) if better and min(known) != max(known) else None
    cells = "".join(f'<td class="n{" best" if v is not None and v == best else ""}">{escape("–" if v is None else text(v))}' for v in values)
    return f"<tr><th>{escape(label)}{cells}"


def _plot(runs, figures):
    points = [(f"{i + 1} {r.name}", f.samples_per_s, f.cpu_ms_per_sample) for i, (r, f) in enumerate(zip(runs, figures))
              if f.samples_per_s and f.cpu_ms_per_sample]  # fmt: skip
    if not points:
        return ""
    return f"<figure><h3>Throughput against CPU cost</h3>{pareto(points)}<figcaption>Dots on the line are beaten by no other run in both.</figcaption></figure>"


def _mean(figures, name):
    return figures.use[name].mean if figures.use.get(name) else None


def _scaled(value, scale):
    return None if value is None else value * scale


def _joules(run, figures, grid):
    used = energy(run, grid)
    return used.kwh * 3.6e6 / figures.samples if used and figures.samples else None
