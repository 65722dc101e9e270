"""drapps report: traces as one page of HTML that explains a run, with nothing to fetch.

`run.py` turns a trace into columns; `figures.py` and `energy.py` compute figures from them, `verdict.py` sentences,
`panels.py` the data of the timeline (shortened by `downsample.py`), `charts.py` small SVGs.  `findings.py`, `cards.py`,
`decisions.py`, `samples.py`, `events.py`, `about_run.py` and `compare.py` make the sections, `page.py` the page.  In
the browser, `plots.js` and `timeline.js` draw.

No plotting library is used: plotly's script adds 4 MB to each page, ten times the size of the whole page of a
ten-minute run, and needs a less strict content security policy.
"""

from drapps.report.energy import WORLD_GRID
from drapps.report.page import make_page
from drapps.report.run import Run
from drapps.atomic_write import write_atomic


def write_report(traces, path, grid=WORLD_GRID):
    """Write the page of some (name, drapps.trace.Trace); grid: gCO2 per kWh.  Return its size in bytes."""
    page = make_page([Run(trace, name) for name, trace in traces], grid).encode("utf-8")
    write_atomic(path, page)
    return len(page)
