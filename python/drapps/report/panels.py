"""The data of the timeline, as JSON for timeline.js: clocks, panels with their lines, knobs, use of each CPU."""

from typing import NamedTuple

from drapps.report.events import listed, changes_by_user
from drapps.report.downsample import downsample, short
from drapps.report.verdict import spells

HEAT_COLUMNS = 400  # columns of the strip with the use of each CPU
HEAT_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # use from 0 to 1, in 36 steps


class Panel(NamedTuple):
    """A panel.  Lines whose column the trace lacks are left out, and so are panels without lines."""

    name: str
    title: str
    unit: str
    source: str  # where its columns are from: "snapshots", "flow" or "decisions"
    lines: dict  # column: label
    kind: str = "line"  # or "stack"


PANELS = (
    Panel("wait", "Consumer waits", "share", "flow", {"wait": "waiting"}),
    Panel("rate", "Samples", "samples/s", "flow", {"samples": "delivered", "worked": "finished by workers"}),
    Panel("cpu", "CPU", "CPUs", "snapshots",
          {"cpu_own": "own", "cpu_foreign": "others", "cpu_steal": "stolen by the host"}, "stack"),
    Panel("batches", "Batches", "batches", "flow", {"ready": "ready", "open": "begun"}),
    Panel("queues", "Samples in work", "samples", "flow",
          {"active": "at a worker", "fetched": "read ahead", "parked": "slow, set aside"}),
    Panel("io", "Disk, network", "B/s", "snapshots", {"disk_bandwidth": "disk", "net_bandwidth": "network"}),
    Panel("pressure", "Pressure", "share", "snapshots",
          {"pressure_cpu": "CPU", "pressure_io": "storage", "pressure_memory": "memory", "throttled": "held by quota",
           "disk_busy": "disk busy"}),
    Panel("memory", "Memory", "B", "snapshots", {"mem_used": "machine", "mem_own": "this process"}),
    Panel("bytes", "Bytes in flight", "B", "flow", {"bytes": "in flight", "bytes_limit": "limit"}),
    Panel("latency", "Latencies", "s", "snapshots",
          {"batch_latency": "batch", "disk_latency": "disk request", "net_rtt": "network"}),
    Panel("service", "Time of a sample", "s", "snapshots",
          {"service_fetch": "read", "service_decode": "decode", "service_augment": "augment",
           "service_slow": "slow lane"}),
    Panel("gpu", "GPU", "share", "snapshots",
          {"gpu_busy": "busy", "gpu_bandwidth": "memory bandwidth", "gpu_memory": "memory used"}),
    Panel("power", "Power", "W", "snapshots", {"power": "CPU packages", "gpu_power": "GPUs"}),
    Panel("reward", "Reward", "of each decision", "decisions", {"reward": "reward"}),
)  # fmt: skip
SUMS = ("samples", "worked")  # shown as rates
LEVELS = ("gpu_memory",)  # shown as a share


def timeline(run, shown_decisions):
    """Return the JSON of a run."""
    sources = {source: _thinned(run, source) for source in ("snapshots", "flow", "decisions")}
    panels = [_panel(panel, sources[panel.source][1]) for panel in PANELS]
    return {
        "seconds": _since(run, run.end),
        "clocks": {source: _steps(run, clock) for source, (clock, _) in sources.items()},
        "panels": [panel for panel in panels if panel["lines"]],
        "cpus": _heat(run),
        "n_cpus": max((len(s.cpu) for s in run.snapshots), default=0),
        "knobs": knob_lines(run),
        "bounds": [[_since(run, a), _since(run, b), bound] for a, b, bound in spells(run)],
        "events": [[_since(run, time), text] for time, text in listed(run)],
        "decisions": [[_since(run, d.time), len(d.changes), int(d.guarded), d.bound] for d in shown_decisions],
        "gaps": [[_since(run, a), _since(run, b)] for a, b in run.gaps],
    }


def _since(run, time):
    """Return seconds since the run began, to a millisecond."""
    return round(time - run.begin, 3)


def _thinned(run, source):
    """Return (clock, columns) of a source, with the columns that a panel shows and that have values."""
    clocks = {"snapshots": run.snapshot_clock, "flow": run.flow_clock, "decisions": [d.time for d in run.decisions]}
    columns = {name: _column(run, source, name) for panel in PANELS if panel.source == source for name in panel.lines}
    columns = {name: values for name, values in columns.items() if any(v is not None for v in values)}
    stacked = [name for panel in PANELS if panel.kind == "stack" for name in panel.lines if name in columns]
    return downsample(clocks[source], columns, stacked)


def _column(run, source, name):
    if source == "decisions":
        return [getattr(d, name) for d in run.decisions]
    if source == "snapshots":
        return run.level(name) if name in LEVELS else run.sensor(name)
    if name == "wait":
        return run.wait_share()
    return run.rate(name) if name in SUMS else run.gauge(name)


def _panel(panel, columns):
    present = [(name, label) for name, label in panel.lines.items() if name in columns]
    return {
        **panel._asdict(),
        "lines": [{"label": label, "v": list(map(short, columns[name]))} for name, label in present],
    }


def _steps(run, clock):
    """Return a clock as differences in integer milliseconds, which are short to write."""
    since = [round((t - run.begin) * 1000) for t in clock]
    return [b - a for a, b in zip([0, *since], since)]


def _heat(run):
    """Return a row of digits for each CPU: the largest use in a slice of time, or that of the slice before; a blank is
    a gap."""
    n, columns = max((len(s.cpu) for s in run.snapshots), default=0), min(HEAT_COLUMNS, len(run.snapshots))
    if not n or not run.seconds:
        return []
    place = lambda time: min(columns - 1, max(0, int((time - run.begin) / run.seconds * columns)))  # noqa: E731
    greatest = [[None] * columns for _ in range(n)]
    for s in run.snapshots:
        for row, busy in zip(greatest, s.cpu):
            row[place(s.time)] = max(busy, row[place(s.time)] or 0.0)
    for begin, end in run.gaps:
        for row in greatest:
            row[place(begin) + 1 : place(end)] = [-1.0] * max(0, place(end) - place(begin) - 1)
    return ["".join(map(_digit, _filled(row))) for row in greatest]


def _filled(row):
    """Return the row with each missing value replaced by the one before."""
    last = -1.0
    for value in row:
        last = last if value is None else value
        yield last


def _digit(use):
    return HEAT_DIGITS[min(35, round(use * 35))] if use >= 0 else " "


def knob_lines(run):
    """Return {knob: [[time, value], ...]}: the values of each knob that decisions or the user changed."""
    turns = [(d.time, knob, *values) for d in run.decisions for knob, values in d.changes.items()]
    turns += [(time, knob, None, value) for time, knob, value in changes_by_user(run)]
    lines = {}
    for time, knob, before, after in sorted(turns, key=lambda turn: turn[0]):
        line = lines.setdefault(knob, [] if before is None else [[0.0, before]])
        line.append([_since(run, time), after])
    return lines


def knobs_at_rest(run):
    """Return {knob: value} of the knobs that never changed, as of the first decision."""
    turned = knob_lines(run)
    first = run.trace.knobs[0][1] if run.trace.knobs else {}
    return {knob: value for knob, value in first.items() if knob not in turned}
