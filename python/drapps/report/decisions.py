"""The table of decisions, with its filters."""

from drapps.report.markup import bound_class, dot, section
from drapps.report.text import clock_text, escape
from drapps.sched import changes_text

MOST_ROWS = 800

FORM = """<form class="filter">
<label>limited by <select name="bound"><option value="">anything</option>{options}</select></label>
<label><input type="checkbox" name="changes"{checked}> only changes</label>
<label>find <input type="search" name="text" placeholder="in reasons"></label> <output></output></form>"""

TABLE = """<div class="scroll tall"><table>
<thead><tr><th>time<th>limited by<th>change<th>reason<th class="n">reward</thead>
<tbody>{rows}</tbody></table></div>"""


def shown(run):
    """Return the decisions that the page has room for: first those with changes, then the earliest others."""
    if len(run.decisions) <= MOST_ROWS:
        return run.decisions
    chosen = [i for i, d in enumerate(run.decisions) if d.changes or d.guarded][:MOST_ROWS]
    others = [i for i, d in enumerate(run.decisions) if not (d.changes or d.guarded)]
    return [run.decisions[i] for i in sorted(chosen + others[: MOST_ROWS - len(chosen)])]


def decision_table(run, decisions):
    """Return the section, or a line that says why there is none."""
    if not decisions:
        return section("Decisions", "<p>None: the run had no policy, or ended before the first.</p>")
    options = "".join(f"<option>{escape(bound)}</option>" for bound in sorted({d.bound for d in decisions}))
    checked = " checked" if any(d.changes for d in decisions) else ""
    rows = "".join(_row(run, d) for d in decisions)
    left_out = len(run.decisions) - len(decisions)
    note = f'<p class="note">{left_out} more are left out, first those without changes.</p>' if left_out else ""
    form, table = FORM.format(options=options, checked=checked), TABLE.format(rows=rows)
    return section("Decisions", form + table + note, "decisions")


def _row(run, d):
    change = changes_text(d.changes)
    guarded = '<span class="tag">guard</span> ' if d.guarded else ""
    time = f'<button type="button" title="show in the timeline">{clock_text(d.time - run.begin)}</button>'
    mark = " data-changed" if d.changes else ""
    return (
        f'<tr data-bound="{escape(d.bound)}"{mark}><td>{time}<td>{dot(bound_class(d.bound))}{escape(d.bound)}'
        f'<td>{escape(change)}<td>{guarded}{escape(d.reason)}<td class="n">{d.reward:.3f}'
    )
