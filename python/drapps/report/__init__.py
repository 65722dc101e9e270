"""drapps report: traces as one page of HTML that explains a run, with nothing to fetch.

`run.py` makes columns of a trace; `figures.py` and `energy.py` make numbers of these, `verdict.py` sentences,
`panels.py` what the timeline draws (`thin.py` keeps it short), `charts.py` small SVGs.  `findings.py`, `cards.py`,
`decisions.py`, `samples.py`, `events.py`, `about.py` and `compare.py` are the sections, `page.py` the page.  In the
browser, `plots.js` and `timeline.js` draw.

There is no plotting library: plotly's script is 4 MB in each page, ten times what the whole page of a ten-minute run
takes, and the page's policy could not be as strict.
"""

from drapps.report.energy import WORLD_GRID
from drapps.report.page import make_page
from drapps.report.run import Run
from drapps.atomic_write import write_atomic


def write_report(traces, path, grid=WORLD_GRID):
    """Writes the page of some traces, as (name, drapps.trace.Trace); grid: gCO2 a kWh.  Returns its size in bytes."""
    page = make_page([Run(trace, name) for name, trace in traces], grid).encode("utf-8")
    write_atomic(path, page)
    return len(page)
