"""What the timeline draws, as JSON for page.js: clocks, panels with their lines, knobs, use of each CPU."""

from drapps.report.thin import POINTS, short, thin
from drapps.report.verdict import spells

HEAT_COLUMNS = 400  # of the strip with the use of each CPU
HEAT_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # use from 0 to 1, in 36 steps

# name, title, unit, kind ("line", "stack"), lines (column, label); of the snapshots, then of the flow.
# A column that a trace lacks is left out, and a panel without lines, too.
SNAPSHOT_PANELS = (
    ("cpu", "CPU", "CPUs", "stack", (("cpu_own", "own"), ("cpu_foreign", "others"), ("cpu_steal", "stolen by the host"))),
    ("pressure", "Pressure", "share", "line",
     (("pressure_cpu", "CPU"), ("pressure_io", "storage"), ("pressure_memory", "memory"), ("throttled", "held by quota"),
      ("disk_busy", "disk busy"))),
    ("memory", "Memory", "B", "line", (("mem_used", "machine"), ("mem_own", "this process"))),
    ("io", "Disk, network", "B/s", "line", (("disk_bandwidth", "disk"), ("net_bandwidth", "network"))),
    ("latency", "Latencies", "s", "line",
     (("batch_latency", "batch"), ("disk_latency", "disk request"), ("net_rtt", "network"))),
    ("service", "Time of a sample", "s", "line",
     (("service_fetch", "read"), ("service_decode", "decode"), ("service_augment", "augment"), ("service_slow", "slow lane"))),
    ("gpu", "GPU", "share", "line", (("gpu_busy", "busy"), ("gpu_bandwidth", "memory bandwidth"), ("gpu_memory", "memory used"))),
    ("power", "Power", "W", "line", (("power", "CPU packages"), ("gpu_power", "GPUs"))),
)  # fmt: skip
FLOW_PANELS = (
    ("rate", "Samples", "samples/s", "line", (("samples", "delivered"), ("worked", "finished by workers"))),
    ("wait", "Trainer waits", "share", "line", (("wait", "waiting"),)),
    ("batches", "Batches", "batches", "line", (("ready", "ready"), ("open", "begun"))),
    ("queues", "Samples in work", "samples", "line",
     (("active", "at a worker"), ("fetched", "read ahead"), ("parked", "slow, set aside"))),
    ("bytes", "Bytes under way", "B", "line", (("bytes", "under way"), ("bytes_limit", "limit"))),
)  # fmt: skip
DECISION_PANELS = (("reward", "Reward", "of each decision", "line", (("reward", "reward"),)),)
ORDER = ("wait", "rate", "cpu", "batches", "queues", "io", "pressure", "memory", "bytes", "latency", "service", "gpu", "power", "reward")
SUMS = ("samples", "worked")
LEVELS = ("gpu_memory",)


def timeline(run, shown_decisions):
    """The JSON of a run."""
    snapshots = {name: _snapshot_column(run, name) for _, _, _, _, lines in SNAPSHOT_PANELS for name, _ in lines}
    flow = {name: _flow_column(run, name) for _, _, _, _, lines in FLOW_PANELS for name, _ in lines}
    stacked = [name for name, _ in SNAPSHOT_PANELS[0][4] if _known(snapshots[name])]
    clocks = {}
    clocks["snapshots"], snapshots = thin(run.snapshot_clock, _present(snapshots), stacked, POINTS)
    clocks["flow"], flow = thin(run.flow_clock, _present(flow), (), POINTS)
    rewards = {"reward": [d.reward for d in run.decisions]}
    clocks["decisions"], rewards = thin([d.time for d in run.decisions], _present(rewards), (), POINTS)
    panels = [_panel(row, "snapshots", snapshots) for row in SNAPSHOT_PANELS]
    panels += [_panel(row, "flow", flow) for row in FLOW_PANELS]
    panels += [_panel(row, "decisions", rewards) for row in DECISION_PANELS]
    panels = sorted((p for p in panels if p["lines"]), key=lambda p: ORDER.index(p["name"]))
    return {
        "seconds": short_time(run.seconds), "clocks": {name: _steps(run, clock) for name, clock in clocks.items()},
        "panels": panels, "cpus": _heat(run), "n_cpus": max((len(s.cpu) for s in run.snapshots), default=0),
        "knobs": knob_lines(run), "bounds": bound_bands(run), "events": _events(run),
        "decisions": [[short_time(d.time - run.begin), len(d.changes), int(d.guarded), d.bound] for d in shown_decisions],
        "gaps": [[short_time(a - run.begin), short_time(b - run.begin)] for a, b in run.gaps],
    }  # fmt: skip


def short_time(seconds):
    """To a millisecond."""
    return round(seconds, 3)


def _snapshot_column(run, name):
    return run.level(name) if name in LEVELS else run.sensor(name)


def _flow_column(run, name):
    if name == "wait":
        return run.wait_share()
    return run.rate(name) if name in SUMS else run.gauge(name)


def _known(values):
    return any(v is not None for v in values)


def _present(columns):
    return {name: values for name, values in columns.items() if _known(values)}


def _panel(row, clock, columns):
    name, title, unit, kind, lines = row
    found = [{"label": label, "v": [short(v) for v in columns[column]]} for column, label in lines if column in columns]
    return {"name": name, "title": title, "unit": unit, "kind": kind, "clock": clock, "lines": found}


def _steps(run, clock):
    """A clock as whole milliseconds since the time before: short to write."""
    since = [round((t - run.begin) * 1000) for t in clock]
    return [b - a for a, b in zip([0, *since], since)]


def _heat(run):
    """A row of digits for each CPU; each digit is the greatest use in its slice of time, a blank is none known."""
    n = max((len(s.cpu) for s in run.snapshots), default=0)
    columns = min(HEAT_COLUMNS, len(run.snapshots))
    if not n or not run.seconds:
        return []
    greatest = [[-1.0] * columns for _ in range(n)]
    for s in run.snapshots:
        at = min(columns - 1, max(0, int((s.time - run.begin) / run.seconds * columns)))
        for i, busy in enumerate(s.cpu):
            greatest[i][at] = max(greatest[i][at], busy)
    return ["".join(_digit(v) for v in row) for row in greatest]


def _digit(use):
    return " " if not use >= 0 else HEAT_DIGITS[min(35, round(use * 35))]


def knob_lines(run):
    """{knob: [[time, value], ...]}: how each knob stood from when on."""
    lines = {name: [[0.0, value]] for name, value in (run.meta.get("knobs") or {}).items() if _is_number(value)}
    for decision in run.decisions:
        for knob, (before, after) in decision.changes.items():
            lines.setdefault(knob, [[0.0, before]]).append([short_time(decision.time - run.begin), after])
    for event in run.events:
        if event.get("event") == "set" and _is_number(event.get("value")):
            lines.setdefault(str(event.get("knob")), []).append([short_time(event["t"] - run.begin), event["value"]])
    return {name: sorted(points) for name, points in lines.items()}


def bound_bands(run):
    """[[begin, end, bound], ...]: what limited the run."""
    return [[short_time(a - run.begin), short_time(b - run.begin), bound] for a, b, bound in spells(run)]


def _events(run):
    """[[time, text], ...] of what is rare, the first 300."""
    texts = [(e["t"], ", ".join([str(e.get("event"))] + [f"{k} {v}" for k, v in e.items() if k not in ("t", "event")]))
             for e in run.events]  # fmt: skip
    return [[short_time(t - run.begin), text[:200]] for t, text in texts[:300]]


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)
