"""The page: one file that loads nothing else.

Its Content-Security-Policy allows only the page's style and script, by their hashes, so an unescaped sample name could
not run code.  The content of traces is in the page as text, and as JSON that is not a script.
"""

import hashlib
import json
from base64 import b64encode
from datetime import UTC, datetime
from importlib.resources import files

from drapps import _core
from drapps.report.about_run import about, words
from drapps.report.cards import cards
from drapps.report.codecs import codec_table
from drapps.report.compare import comparison, run_class
from drapps.report.decisions import decision_table, shown
from drapps.report.events import event_table
from drapps.report.findings import verdict
from drapps.report.markup import dot, section
from drapps.report.panels import knobs_at_rest, timeline
from drapps.report.samples import distributions, where_time_goes
from drapps.report.text import escape, time_text

SCRIPTS = ("plots.js", "timeline.js")

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{title}</title><style>{style}</style></head><body>
<header><h1>drapps report</h1><p>{subtitle}</p></header>
<main>{body}</main>
<footer>made by drapps {version}; this page loads nothing from the network</footer>
<script>{script}</script></body></html>
"""
POLICY = "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'"

TIMELINE = """<div class="tools">
<button type="button" data-do="in">zoom in</button><button type="button" data-do="out">zoom out</button>
<button type="button" data-do="reset">whole run</button><output class="range"></output>
<small>Drag to zoom, double-click for the whole run, Ctrl+wheel zooms; keys: + − 0 and arrows.</small></div>
<div class="panels" tabindex="0" role="group"
 aria-label="timeline: plus and minus zoom, arrows move, 0 shows the whole run"></div>
<div class="tip" hidden></div>
<script type="application/json" class="data">{data}</script>
<noscript><p>The timeline is drawn by the page's script, but scripts are switched off.</p></noscript>"""


def make_page(runs, grid):
    """Return the HTML of some runs; grid: gCO2 per kWh."""
    style, script = read_file("page.css"), "".join(map(read_file, SCRIPTS))
    sections = [_run(run, grid) for run in runs]
    if len(runs) > 1:
        body = comparison(runs) + "".join(_folded(i, run, part) for i, (run, part) in enumerate(zip(runs, sections)))
    else:
        body = f'<div class="run">{sections[0]}</div>'
    body += words()
    title = escape("drapps report: " + ", ".join(run.name for run in runs))
    policy = POLICY.format(source_hash(style), source_hash(script))
    return PAGE.format(
        style=style, script=script, policy=policy, body=body, title=title, subtitle=_subtitle(runs),
        version=escape(_core.version()),
    )  # fmt: skip


def read_file(name):
    """A style or script of the page."""
    return files("drapps.report").joinpath(name).read_text(encoding="utf-8")


def source_hash(text):
    """What a Content-Security-Policy allows a style or script by."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


def _subtitle(runs):
    if len(runs) > 1:
        return escape(f"{len(runs)} traces")
    return escape(" · ".join([runs[0].name, time_text(runs[0].seconds), *_where(runs[0].meta)]))


def _where(meta):
    """Return date, machine and data of a run, as far as the trace has them."""
    machine, clock = (value if isinstance(value, dict) else {} for value in (meta.get("machine"), meta.get("clock")))
    if isinstance(clock.get("unix_ns"), int) and 0 < clock["unix_ns"] < 2**63:
        began = datetime.fromtimestamp(clock["unix_ns"] // 10**9, UTC)
        yield began.strftime("%Y-%m-%d %H:%M UTC")
    if machine:
        yield f"{machine.get('host', '?')}, {_plain(machine.get('cpus', '?'))} CPUs"
    if meta.get("data"):
        yield f"{meta['data']}, {meta.get('samples', '?')} samples"


def _plain(value):
    return f"{value:g}" if isinstance(value, float) else value


def _folded(i, run, inside):
    """Return one of several runs as a foldable part; the first is open."""
    opened = " open" if i == 0 else ""
    title = f"{dot(run_class(i))}{i + 1} {escape(run.name)}"
    return f'<details class="run"{opened}><summary>{title}</summary>{inside}</details>'


def _run(run, grid):
    decisions = shown(run)
    watched = verdict(run), cards(run, grid), _timeline(run, decisions), decision_table(run, decisions)
    rest = where_time_goes(run), distributions(run), codec_table(run), event_table(run), about(run)
    return "\n".join((*watched, *rest))


def _timeline(run, decisions):
    if not run.snapshots and not run.flows:
        return section("Timeline", "<p>The trace has neither snapshots nor flow: there is nothing to draw.</p>")
    data = json.dumps(timeline(run, decisions), separators=(",", ":"), ensure_ascii=False)
    data = data.replace("<", "\\u003c")  # a name with "</script>" would end the block
    at_rest = ", ".join(f"{knob} {_plain(value)}" for knob, value in knobs_at_rest(run).items())
    note = f'<p class="note">Settings that stayed as they were: {escape(at_rest)}.</p>' if at_rest else ""
    return section("Timeline", TIMELINE.format(data=data) + note, "timeline")
