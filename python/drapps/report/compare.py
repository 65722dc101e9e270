"""Several runs side by side: a table of figures, and throughput against CPU cost."""

import json

from drapps.report.charts import pareto
from drapps.report.energy import JOULES_PER_KWH, energy
from drapps.report.markup import dot, section, titled
from drapps.report.text import bytes_text, count_text, escape, percent, time_text
from drapps.report.verdict import advice_on, headline


def _latency(quantile):
    return lambda run: getattr(run.figures.latency, quantile, None)


def _use(name, kind):
    return lambda run: getattr(run.figures.use.get(name), kind, None)


def _cpu_of_a_sample(run):
    cost = run.figures.cpu_ms_per_sample
    return None if cost is None else cost / 1000


def _joules_of_a_sample(run):
    used = energy(run)
    return used.kwh * JOULES_PER_KWH / run.figures.samples if used and run.figures.samples else None


# label, figure of a run, how it is shown, which is better
ROWS = (
    ("samples/s", lambda run: run.figures.samples_per_s, count_text, max),
    ("MB/s of batches", lambda run: run.figures.made_per_s, lambda value: f"{value / 1e6:.1f}", max),
    ("consumer waits", lambda run: run.figures.wait_share, percent, min),
    ("batch latency, median", _latency("p50"), time_text, min),
    ("batch latency, p99", _latency("p99"), time_text, min),
    ("CPU of a sample", _cpu_of_a_sample, time_text, min),
    ("own CPUs, mean", _use("cpu_own", "mean"), "{:.2f}".format, min),
    ("memory of the process, peak", _use("mem_own", "peak"), bytes_text, min),
    ("hardware utilisation", lambda run: run.figures.efficiency, percent, max),
    ("resource imbalance", lambda run: run.figures.imbalance, "{:.2f}".format, min),
    ("energy, J a sample", _joules_of_a_sample, "{:.3g}".format, min),
)


def comparison(runs):
    """Return the section; runs are numbered in the given order."""
    head = "".join(f'<th class="n">{dot(run_class(i))}{i + 1} {escape(run.name)}' for i, run in enumerate(runs))
    limits = "".join(f'<td class="n words">{escape(_limit(run))}' for run in runs)
    apart = unlike(runs)
    rows = f"<tr><th>what limits it{limits}" + "".join(_row(runs, *row, mark=not apart) for row in ROWS)
    table = f'<div class="scroll"><table><thead><tr><th>{head}</thead><tbody>{rows}</tbody></table></div>'
    plot = "" if apart else _plot(runs)
    return section(f"{len(runs)} runs, side by side", _differences(runs, apart) + table + plot, "compare")


WORK = {  # differences that make runs incomparable, with their places in the trace's meta
    "data": ("data", "samples"),
    "ops": ("graph",),
    "batch size": ("settings.batch_size",),
    "machine": ("machine.host", "machine.cpus"),
}


def unlike(runs):
    """Return the names of WORK in which the runs differ, so that none is the best."""
    return [what for what, places in WORK.items() if any(len(_values(runs, place)) > 1 for place in places)]


def _values(runs, place):
    """Return the distinct values (as JSON) at a place of the traces' meta."""
    found = set()
    for run in runs:
        value = run.meta
        for name in place.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            found.add(json.dumps(value, sort_keys=True, default=str))
    return found


def _differences(runs, apart):
    """Return a note on the differences of the runs: why none is marked, or which settings differ."""
    if apart:
        return f'<p class="note">None is marked as the best: the runs differ in {" and ".join(apart)}.</p>'
    given = [run.meta.get("settings") for run in runs]
    names = sorted({name for settings in given if isinstance(settings, dict) for name in settings})
    changed = [name for name in names if len(_values(runs, f"settings.{name}")) > 1]
    texts = [f"{name} {' / '.join(_setting(run, name) for run in runs)}" for name in changed]
    return f'<p class="note">Settings that differ: {escape("; ".join(texts))}.</p>' if texts else ""


def _setting(run, name):
    settings = run.meta.get("settings")
    return str(settings.get(name, "–")) if isinstance(settings, dict) else "–"


def run_class(i):
    """Return the CSS class of the i-th run's colour."""
    return f"run{i % 7}"


def _limit(run):
    bound, _ = headline(run)
    return advice_on(run, bound)[0]


def _row(runs, label, get, text, better, mark):
    """Return a row.  mark: mark the runs whose text equals that of the best, unless all are equal."""
    values = [get(run) for run in runs]
    known = [v for v in values if v is not None]
    if not known:
        return ""
    texts = ["–" if v is None else text(v) for v in values]
    best = text(better(known)) if mark and len({text(v) for v in known}) > 1 else None
    return f"<tr><th>{escape(label)}" + "".join(f'<td class="{_css(t == best)}">{escape(t)}' for t in texts)


def _css(best):
    return "n best" if best else "n"


def _plot(runs):
    points = [(i, run.name, run.figures.samples_per_s, run.figures.cpu_ms_per_sample) for i, run in enumerate(runs)]
    points = [point for point in points if point[2] and point[3]]
    note = '<p class="note">No other run beats those on the line in both.</p>'
    return titled("Throughput against CPU cost", pareto(points) + note) if points else ""
