"""drapps report: what a traced run did, as one page of HTML."""

import math
import os

HELP = "a page of HTML that explains traces of runs"


def add_arguments(parser):
    from drapps.report.energy import WORLD_GRID

    parser.add_argument("traces", metavar="TRACE", nargs="+", help="what loader(trace=...) or DRAPPS_TRACE wrote; several: compared")
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="the page (default: report.html)")
    parser.add_argument("--grid", type=float, default=WORLD_GRID, metavar="G",
                        help="grams of CO2 of a kWh (default: %(default)g, the world's mean of 2023 by Ember)")  # fmt: skip


def run(args):
    from drapps import _core, trace
    from drapps.report import write_report

    if not (args.grid >= 0 and math.isfinite(args.grid)):
        raise _core.ArgumentError(f"--grid is {args.grid}, must be 0 or more")
    traces = [(os.path.basename(path), trace.read(path)) for path in args.traces]
    size = write_report(traces, args.output, args.grid)
    print(f"{args.output}: {len(traces)} trace{'s' if len(traces) > 1 else ''}, {size / 1000:.0f} kB; open it in a browser")
