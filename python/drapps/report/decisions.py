"""The table of decisions, with its filters."""

from drapps.report.text import clock_text, escape

MOST_ROWS = 800


def shown(run):
    """The decisions that the page has room for: those that changed something, and then the first others."""
    if len(run.decisions) <= MOST_ROWS:
        return run.decisions
    chosen = [i for i, d in enumerate(run.decisions) if d.changes or d.guarded][:MOST_ROWS]
    others = [i for i, d in enumerate(run.decisions) if not (d.changes or d.guarded)]
    return [run.decisions[i] for i in sorted(chosen + others[: MOST_ROWS - len(chosen)])]


def section(run, rows):
    """The section, or a line that says why there is none."""
    if not run.decisions:
        return "<section><h2>Decisions</h2><p>None: the run had no policy, or ended before the first.</p></section>"
    bounds = sorted({d.bound for d in rows})
    options = "".join(f"<option>{escape(b)}</option>" for b in bounds)
    checked = " checked" if any(d.changes for d in rows) else ""
    left_out = len(run.decisions) - len(rows)
    note = f"<p class=note>{left_out} more, that changed nothing, are not shown.</p>" if left_out else ""
    body = "".join(_row(run, d) for d in rows)
    return f"""<section class="decisions"><h2>Decisions</h2>
<form class="filter"><label>limited by <select name="bound"><option value="">anything</option>{options}</select></label>
<label><input type="checkbox" name="changes"{checked}> only changes</label>
<label>find <input type="search" name="text" placeholder="in reasons"></label> <output></output></form>
<div class="scroll tall"><table><thead><tr><th>time<th>limited by<th>change<th>reason<th class="n">reward</tr></thead>
<tbody>{body}</tbody></table></div>{note}</section>"""


def _row(run, d):
    change = ", ".join(f"{k} {_value(before)} → {_value(after)}" for k, (before, after) in d.changes.items())
    guarded = '<span class="tag">guard</span> ' if d.guarded else ""
    time = clock_text(d.time - run.begin)
    return (f'<tr data-bound="{escape(d.bound)}"{" data-changed" if d.changes else ""}>'
            f'<td><button type="button" title="show in the timeline">{time}</button>'
            f'<td><i class="dot b-{bound_class(d.bound)}"></i>{escape(d.bound)}<td>{escape(change)}'
            f'<td>{guarded}{escape(d.reason)}<td class="n">{d.reward:.3f}</tr>')  # fmt: skip


BOUNDS = ("unknown", "consumer", "cpu", "workers", "storage", "memory", "ahead", "quota", "foreign")


def bound_class(bound):
    """A bound as part of a CSS class: one of the table, whatever a file says."""
    return bound if bound in BOUNDS else "unknown"


def _value(value):
    return f"{value:.4g}" if abs(value) < 1e6 else f"{value / 1e6:.4g}M"
