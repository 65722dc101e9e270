"""drapps trace: shows a trace as text or JSON lines, exports it for Perfetto, or recomputes its rewards."""

import json
import sys
from collections import Counter

from drapps.printing import print_table
from drapps.counted import counted
from drapps.printable import printable
from drapps.sched import changes_text

HELP = "show a trace, export it for Perfetto, or recompute its rewards"
TOLERANCE = 1e-6
LAST = 8  # number of decisions and events that are shown


def add_arguments(parser):
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    show = _action(actions, "show", "print a summary")
    show.add_argument("--json", action="store_true", help="print each record as a line of JSON")
    export = _action(actions, "export", "write a file for ui.perfetto.dev or chrome://tracing")
    export.add_argument("-o", "--output", required=True, metavar="OUT.json", help="the file to write")
    export.add_argument("--with", dest="profile", metavar="TORCH.json", help="add a trace of torch.profiler")
    _action(actions, "replay", "recompute each decision's reward from its terms and weights")


def _action(actions, name, text):
    parser = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
    parser.add_argument("file", help="a trace")
    return parser


def run(args):
    return {"show": _show, "export": _export, "replay": _replay}[args.action](args)


# --- show ---


def _show(args):
    from drapps.trace import read, records

    if args.json:
        for record in records(args.file):
            print(json.dumps(record))
        return
    trace = read(args.file)
    for name, value in _facts(trace):
        print(f"{name + ':':<12}{printable(value)}")
    kinds = _by_kind(trace.spans)
    if kinds:
        print()
        print_table(("span", "count", "mean ms", "longest ms", "longest is"), [_row(k, s) for k, s in kinds.items()])
    _show_events(trace)
    if trace.decisions:
        print("\nlast decisions:")
        rows = [(str(d.number), d.bound, changes_text(d.changes), f"{d.reward:.4f}", d.reason)
                for d in trace.decisions[-LAST:]]  # fmt: skip
        print_table(("number", "limited by", "change", "reward", "reason"), rows)


def _show_events(trace):
    from drapps.report.events import listed

    begin, events = trace.meta["clock"]["start_ns"] * 1e-9, listed(trace, most=None)
    if events:
        print("\nlast events:")
        print_table(("s", "event"), [(f"{time - begin:.3f}", text) for time, text in events[-LAST:]])


def _facts(trace):
    meta, missing = trace.meta, trace.missing
    yield "data", meta.get("data", "not said")
    yield "written by", f"drapps {meta.get('drapps')}, process {meta.get('pid')} on {meta['machine'].get('host', '?')}"
    end = f"ended: {trace.ended}" if trace.ended else "incomplete: killed, or still being written"
    yield "time", f"{_duration(trace):.3f} s, {end}"
    yield "holds", (f"{len(trace.snapshots)} snapshots, {len(trace.flow)} flow records, "
                    f"{counted(len(trace.decisions), 'decision')}, {len(trace.spans)} spans, "
                    f"{len(trace.events)} events")
    yield "events", ", ".join(f"{n} {event}" for event, n in Counter(e.get("event") for e in trace.events).items())
    yield "missing", f"{missing['left_out']} spans not sampled, {missing['lost']} records lost"


def _duration(trace):
    begin = trace.meta["clock"]["start_ns"] * 1e-9
    times = [rows[-1] for rows in ([s.time for s in trace.snapshots], [e["t"] for e in trace.events],
                                   [s.end for s in trace.spans]) if rows]  # fmt: skip
    return max(times, default=begin) - begin


def _by_kind(spans):
    kinds = {}
    for span in spans:
        kinds.setdefault(span.kind, []).append(span)
    return kinds


def _row(kind, spans):
    longest = max(spans, key=lambda span: span.end - span.begin)
    mean = sum(span.end - span.begin for span in spans) / len(spans)
    where = longest.key or f"batch {longest.batch}"
    return kind, str(len(spans)), f"{mean * 1e3:.3f}", f"{(longest.end - longest.begin) * 1e3:.3f}", where


# --- export and replay ---


def _export(args):
    from drapps.trace import read
    from drapps.atomic_write import write_atomic

    events = read(args.file).chrome(profile=args.profile)
    write_atomic(args.output, json.dumps(events).encode())
    print(f"{args.output}: {len(events['traceEvents'])} events; open it at ui.perfetto.dev or chrome://tracing")


def _replay(args):
    from drapps.trace import read

    rows = read(args.file).replay()
    wrong = [row for row in rows if not row.difference <= TOLERANCE]
    for row in wrong:
        print(f"decision {row.number}: logged {row.logged!r}, recomputed {row.recomputed!r}", file=sys.stderr)
    most = max((row.difference for row in rows), default=0.0)
    print(f"{counted(len(rows), 'decision')}, {counted(len(wrong), 'reward')} differ by more than {TOLERANCE:g}; "
          f"the largest difference is {most:.3g}")  # fmt: skip
    return 1 if wrong else 0
