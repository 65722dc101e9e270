"""The page: one file, no request to anywhere.

Its Content-Security-Policy allows the one style and the one script by their hashes, so that a sample's name could run
nothing even if it came through unescaped.  What traces hold is in the page as text, and as JSON that is not a script.
"""

import hashlib
import json
from base64 import b64encode
from importlib.resources import files

from drapps import _core
from drapps.report import compare, decisions, parts
from drapps.report.panels import timeline
from drapps.report.text import escape, time_text

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{title}</title><style>{style}</style></head><body>
<header><h1>drapps report</h1><p>{subtitle}</p></header>
<main>{body}</main>
<footer>made by drapps {version}; this page loads nothing from anywhere</footer>
<script>{script}</script></body></html>
"""


def make_page(runs, grid):
    """The HTML of some runs."""
    style, script = (files("drapps.report").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    sections = [_run(run, grid) for run in runs]
    if len(runs) > 1:
        body = compare.section(runs) + "".join(_folded(i, r, s) for i, (r, s) in enumerate(zip(runs, sections)))
    else:
        body = f'<div class="run">{sections[0]}</div>'
    title = ", ".join(run.name for run in runs)
    return PAGE.format(style=style, script=script, style_hash=_hash(style), script_hash=_hash(script), body=body,
                       title=escape(f"drapps report: {title}"), subtitle=_subtitle(runs), version=escape(_core.version()))  # fmt: skip


def _subtitle(runs):
    if len(runs) > 1:
        return escape(f"{len(runs)} traces")
    run = runs[0]
    known = [run.meta.get(key) for key in ("host", "dataset")]
    return escape(" · ".join([run.name, time_text(run.seconds)] + [k for k in known if isinstance(k, str)]))


def _folded(i, run, section):
    """One run of several: the first is open."""
    opened = " open" if i == 0 else ""
    return f'<details class="run"{opened}><summary><i class="dot run{i % 7}"></i>{i + 1} {escape(run.name)}</summary>{section}</details>'


def _run(run, grid):
    rows = decisions.shown(run)
    return "\n".join((
        parts.verdict(run), parts.cards(run, grid), _timeline(run, rows), decisions.section(run, rows),
        parts.where_time_goes(run), parts.distributions(run), parts.facts(run),
    ))  # fmt: skip


def _timeline(run, rows):
    if not run.snapshots and not run.flows:
        return "<section><h2>Timeline</h2><p>The trace has neither snapshots nor flow: there is nothing to draw.</p></section>"
    # "</script>" in a name would end the block: no "<" is left in it.
    data = json.dumps(timeline(run, rows), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return f"""<section class="timeline"><h2>Timeline</h2>
<div class="tools"><button type="button" data-do="in">zoom in</button><button type="button" data-do="out">zoom out</button>
<button type="button" data-do="reset">whole run</button><output class="range"></output>
<small>Drag to zoom, double-click for the whole run, Ctrl+wheel zooms; keys: + − 0 and arrows.</small></div>
<div class="panels" tabindex="0" role="group" aria-label="timeline: plus and minus zoom, arrows move, 0 shows the whole run"></div>
<div class="tip" hidden></div>
<script type="application/json" class="data">{data}</script>
<noscript><p>The timeline is drawn by the page's own script, which is switched off here.</p></noscript></section>"""


def _hash(text):
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
