"""drapps report: traces as one page of HTML that explains a run, with nothing to fetch.

`run.py` makes columns of a trace, `figures.py` and `energy.py` numbers, `verdict.py` sentences, `panels.py` what the
timeline draws, `charts.py` small SVGs, `parts.py` and `decisions.py` sections, `compare.py` the sections of several
runs, `page.py` the page.  `page.js` draws the timeline in the browser.

There is no plotting library: plotly would put 4 MB of script into each page, more than ten times what the whole page of a
ten-minute run takes, and would need `unsafe-eval` or `unsafe-inline` where this page allows two hashes alone.
"""

from drapps.report.energy import WORLD_GRID
from drapps.report.page import make_page
from drapps.report.run import Run


def write_report(traces, path, grid=WORLD_GRID):
    """Writes the page of some traces, as (name, drapps.trace.Trace); grid: gCO2 a kWh.  Returns its size in bytes."""
    page = make_page([Run(trace, name) for name, trace in traces], grid).encode("utf-8")
    with open(path, "wb") as file:
        file.write(page)
    return len(page)
