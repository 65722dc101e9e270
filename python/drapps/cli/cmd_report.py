"""drapps report: one HTML page that explains a traced run."""

import math
import os

HELP = "write an HTML page that explains traces of runs"


def add_arguments(parser):
    from drapps.report.energy import WORLD_GRID

    what = "file written by loader(trace=...) or DRAPPS_TRACE; several files are compared"
    parser.add_argument("traces", metavar="TRACE", nargs="+", help=what)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="report.html", help="the HTML file to write (default: report.html)"
    )
    grid = "grams of CO2 per kWh (default: %(default)g, the world's mean of 2023 by Ember)"
    parser.add_argument("--grid", type=float, default=WORLD_GRID, metavar="G", help=grid)


def run(args):
    from drapps import _core, trace
    from drapps.report import write_report

    if not (args.grid >= 0 and math.isfinite(args.grid)):
        raise _core.ArgumentError(f"--grid must be a non-negative number, got {args.grid}")
    traces = [(name, trace.read(path)) for name, path in zip(_names(args.traces), args.traces)]
    size = write_report(traces, args.output, args.grid)
    print(f"{args.output}: {size / 1000:.0f} kB; open it in a browser")


def _names(paths):
    """Return the file names; if some are equal (before/run.drtrace, after/run.drtrace), the paths as given."""
    names = [os.path.basename(path) for path in paths]
    return names if len(set(names)) == len(names) else paths
