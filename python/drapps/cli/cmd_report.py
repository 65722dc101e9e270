"""drapps report: what a traced run did, as one page of HTML."""

import math
import os

HELP = "a page of HTML that explains traces of runs"


def add_arguments(parser):
    from drapps.report.energy import WORLD_GRID

    what = "what loader(trace=...) or DRAPPS_TRACE wrote; several are compared"
    parser.add_argument("traces", metavar="TRACE", nargs="+", help=what)
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="the page (default: report.html)")
    grid = "grams of CO2 of a kWh (default: %(default)g, the world's mean of 2023 by Ember)"
    parser.add_argument("--grid", type=float, default=WORLD_GRID, metavar="G", help=grid)


def run(args):
    from drapps import _core, trace
    from drapps.report import write_report

    if not (args.grid >= 0 and math.isfinite(args.grid)):
        raise _core.ArgumentError(f"--grid is {args.grid}, must be 0 or more")
    traces = [(name, trace.read(path)) for name, path in zip(_names(args.traces), args.traces)]
    size = write_report(traces, args.output, args.grid)
    print(f"{args.output}: {size / 1000:.0f} kB, to be opened in a browser")


def _names(paths):
    """The files' names; where some are the same (before/run.drtrace, after/run.drtrace), the paths as given."""
    names = [os.path.basename(path) for path in paths]
    return names if len(set(names)) == len(names) else paths
