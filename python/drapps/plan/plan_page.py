"""A plan as one page of HTML, in the style of the report.  It has no script at all, and its policy permits none."""

from drapps import _core
from drapps.plan.outcome import sorted_rows
from drapps.plan.plan_text import choice_text, doubt_text, rate_text, score_text
from drapps.plan.scoring import Metrics, Prices, pareto_front
from drapps.report.charts import Frame, round_steps
from drapps.report.markup import section, table
from drapps.report.page import read_file, source_hash
from drapps.report.text import bytes_text, escape, time_text

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>drapps plan</title><style>{style}</style></head><body>
<header><h1>drapps plan</h1><p>{subtitle}</p></header>
<main>{body}</main>
<footer>made by drapps {version}; this page loads nothing from anywhere</footer></body></html>
"""
POLICY = "default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'"
STYLE = """
.plan circle { fill: none; stroke: var(--p0); stroke-width: 1.6 }
.plan .onfront circle { fill: var(--p0) }
.plan .chosen circle { fill: var(--p3); stroke: var(--p3) }
.plan .onfront text, .plan .chosen text { fill: var(--text); font-weight: 600 }
.plan .between { stroke: var(--p0); stroke-opacity: 0.45; stroke-width: 1.2 }
"""
# Pairs of metrics: (across, up), with their names and how numbers are written; up is better where it is throughput.
PAIRS = (("preparation", "throughput"), ("storage", "throughput"), ("preparation", "storage"))
NAMES = {"throughput": "samples/s", "preparation": "seconds of preparation", "storage": "GB of storage"}
SCALES = {"throughput": 1.0, "preparation": 1.0, "storage": 1e-9}
WRITTEN = {"throughput": rate_text, "preparation": time_text, "storage": bytes_text}


def make_page(plan):
    """The HTML of a plan."""
    style = read_file("page.css") + STYLE
    facts = plan.facts
    subtitle = (
        f"{facts['measured_samples']} of {facts['samples']} samples · {time_text(facts['seconds'])} · {facts['ended']}"
    )
    body = section(choice_text(plan), _objective(plan), "verdict") + _charts(plan) + _table(plan) + _rest(plan)
    return PAGE.format(
        policy=POLICY.format(source_hash(style)),
        style=style,
        subtitle=escape(subtitle),
        body=body,
        version=escape(_core.version()),
    )


def _objective(plan):
    doubt = doubt_text(plan)
    doubt = f"<p>{escape(doubt)}</p>" if doubt else ""
    return f"{doubt}<p>{escape(plan.objective)}</p><p>{escape(repr(plan.pipe))}</p>"


# --- Pareto fronts ---


def _charts(plan):
    rows = sorted_rows(plan.rows)
    if not rows:
        return ""
    charts = "".join(
        f"<div><h3>{escape(NAMES[up])} and {escape(NAMES[across])}</h3>{pareto_chart(plan, rows, across, up)}</div>"
        for across, up in PAIRS
    )
    note = (
        '<p class="note">One dot a strategy, with its number in the table; filled: none is better in one of the two '
        "and no worse in the other; the chosen one has its own colour. Lines are intervals.</p>"
    )
    return section("Pareto fronts", f'<div class="columns">{charts}</div>{note}', "plan")


def pareto_chart(plan, rows, across, up):
    """Two metrics of all strategies against each other, as SVG."""
    frame = Frame(560, 320, 64, 24, 24, 42)
    most = {field: 1.1 * max(_bounds(row, field)[2] for row in rows) or 1.0 for field in (across, up)}
    front = set(pareto_front({row.strategy: row.metrics for row in rows}, (across, up)))
    inside = _axes(frame, most, across, up)
    for number, row in enumerate(rows, 1):
        inside += _point(frame, plan, most, number, row, across, up, row.strategy in front)
    return frame.svg(inside, f"{NAMES[up]} against {NAMES[across]}, one dot a strategy", "pareto")


def _bounds(row, field):
    interval = {"throughput": row.rate, "preparation": row.preparation, "storage": row.storage}[field]
    return tuple(value * SCALES[field] for value in interval)


def _point(frame, plan, most, number, row, across, up, on_front):
    (left, x, right), (low, y, high) = (tuple(v / most[f] for v in _bounds(row, f)) for f in (across, up))
    css = "chosen" if row.strategy == plan.chosen else "onfront" if on_front else ""
    said = ", ".join(f"{NAMES[f].split(' of ')[-1]} {WRITTEN[f](getattr(row.metrics, f))}" for f in Metrics._fields)
    lines = _line(frame.x(left), frame.x(right), frame.y(y), frame.y(y)) + _line(
        frame.x(x), frame.x(x), frame.y(low), frame.y(high)
    )
    return (
        f'<g class="{css}">{lines}<circle cx="{frame.x(x)}" cy="{frame.y(y)}" r="5"><title>'
        f"{escape(f'{number} {row.strategy.name}: {said}')}</title></circle>"
        f'<text x="{frame.x(x) + 8}" y="{frame.y(y) - 7}">{number}</text></g>'
    )


def _line(x1, x2, y1, y2, css="between"):
    return f'<line class="{css}" x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"/>'


def _axes(frame, most, across, up):
    lines = _line(frame.left, frame.right, frame.floor, frame.floor, "axis") + _line(
        frame.left, frame.left, frame.top, frame.floor, "axis"
    )
    for value in round_steps(most[across]):
        lines += (
            f'<text x="{frame.x(value / most[across])}" y="{frame.floor + 16}" text-anchor="middle">{value:g}</text>'
        )
    for value in round_steps(most[up]):
        y = frame.y(value / most[up])
        lines += _line(frame.left, frame.right, y, y, "grid")
        lines += f'<text x="{frame.left - 6}" y="{y + 4}" text-anchor="end">{value:g}</text>'
    better = "more" if up == "throughput" else "less"
    lines += (
        f'<text x="{(frame.left + frame.right) / 2}" y="{frame.height - 8}" text-anchor="middle">{NAMES[across]} '
        "(less is better)</text>"
    )
    return lines + f'<text x="{frame.left + 6}" y="14">{NAMES[up]} ({better} is better)</text>'


# --- tables ---


def _table(plan):
    last = "#money" if isinstance(plan.objective, Prices) else "#score"
    columns = [
        "#",
        "strategy",
        "#samples/s",
        "#between",
        "#cold",
        "#warm",
        "#in memory",
        "#preparation",
        "#CPU time of it",
        "#storage",
        "#rounds",
        last,
        "front",
        "note",
    ]
    rows = [_cells(plan, number, row) for number, row in enumerate(sorted_rows(plan.rows), 1)]
    return section("Strategies", table(columns, rows))


def _cells(plan, number, row):
    mark = "chosen" if row.strategy == plan.chosen else ""
    between = f"{rate_text(row.rate.low)} – {rate_text(row.rate.high)}"
    out = "clearly worse" if row.why_out.startswith("clearly worse") else row.why_out
    note = "; ".join(filter(None, [mark, row.why_not, out]))
    return [
        number,
        row.strategy.name,
        rate_text(row.rate.mid),
        between,
        rate_text(row.cold.mid),
        rate_text(row.warm.mid),
        rate_text(row.memory.mid),
        time_text(row.preparation.mid),
        time_text(row.cpu_seconds),
        bytes_text(row.storage.mid),
        len(row.values),
        score_text(plan, row),
        "yes" if row.front else "",
        note,
    ]


def _rest(plan):
    edges = [
        (edge.stages, edge.label, "yes" if edge.legal else f"no: {edge.why}", _fields(edge)) for edge in plan.edges
    ]
    inside = section("Edges", table(["#stages before it", "edge", "samples may be stored", "fields"], edges))
    left = [(strategy.name, why) for strategy, why in {**plan.refused, **plan.unmeasured}.items()]
    if left:
        inside += section("Not in the table", table(["strategy", "why"], left))
    if plan.notes:
        inside += section("Notes", "".join(f"<p>{escape(note)}</p>" for note in plan.notes))
    return inside


def _fields(edge):
    return "; ".join(f"{field['name']}: {field['form']}" for field in edge.fields)
