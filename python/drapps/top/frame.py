"""A frame of `drapps top`: lines of a given width and height about the machine, all loaders, and one of them."""

import textwrap

from rich.text import Text

from drapps.printing import bytes_text
from drapps.sched import LIMITS, changes_text
from drapps.top import parts
from drapps.top.parts import DIM, NAME, Meter, ago, number, percent, rows, rule, seconds, wrapped

SILENT = 3.0  # seconds without an update from which a loader is marked
FEW_CPUS = 4  # up to this many CPUs have a number each

NOBODY = (
    "No loader is running.",
    "",
    "Loaders show themselves while a program iterates over them:",
    "",
    '    for images, labels in drapps.read("photos").loader(batch_size=32):',
    "        ...",
    "",
    "Not seen from here: programs of other users or in containers, and those with",
    "another DRAPPS_LIVE.",
)
KEYS = (("tab, arrows", "select the next loader"), ("s", "sort by age, rate, wait, name"),
        ("?", "show or hide this help"),
        ("q, Ctrl-C", "quit"))  # fmt: skip
WORDS = (
    ("waits", "share of the consumer's time in which it waited for a batch"),
    ("step", "time between two batches in which the consumer worked"),
    ("ready", "batches that are made and not taken, of the prefetch window"),
    ("in flight", "memory of samples and batches that are in work or ready"),
    ("slow lane", "samples that take far longer than most; others pass them"),
)
LEAST = 6  # lines for decisions, for which the machine is shown in fewer lines


def draw(loaders, complaints, width, height=None, selected=0, hint=""):
    """Return the lines of a frame.  height: None: as many as needed."""
    lines = [_head(loaders, hint, width)]
    lines += [Text(text, style="yellow") for text in complaints]
    if loaders:
        lines += _body(loaders, loaders[min(selected, len(loaders) - 1)], width, height and height - len(lines))
    elif not complaints:
        lines += ["", *NOBODY]
    return [_cut(line, width) for line in lines[:height]]


def help_lines(width, height=None):
    """Return the lines of the help: keys and words."""
    lines = [Text("drapps top: help", style="bold cyan")]
    for title, rows_of in (("keys", KEYS), ("words", WORDS), ("limited by", LIMITS.items())):
        lines.append(rule(Text(title, style=NAME), "", width))
        lines += [Text(f"{name:<12} {text}") for name, text in rows_of]
    return [_cut(line, width) for line in lines[:height]]


def _body(loaders, chosen, width, height):
    upper, lower = machine(loaders, width), one(chosen, width)
    if len(loaders) > 1:
        lower = table(loaders, chosen, width, height and max(3, height // 4)) + lower
    if height and len(upper) + len(lower) + LEAST > height:
        upper = machine(loaders, width, brief=True)
    lines = upper + lower
    return lines + decisions(chosen, width, height and height - len(lines))


def _cut(line, width):
    line = Text(line) if isinstance(line, str) else line
    line.truncate(width, overflow="ellipsis")
    return line


def _head(loaders, hint, width):
    n, programs = len(loaders), len({loader.key[0] for loader in loaders})
    words = f"{n} loader{'s' * (n != 1)} in {programs} program{'s' * (programs != 1)}" if n else "waiting for a loader"
    line = Text().append("drapps top", style="bold cyan").append(f"   {words}")
    return line.append(" " + hint.rjust(max(0, width - len(line.plain) - 1)), style=DIM)


# --- the machine ---


def machine(loaders, width, brief=False):
    """Return lines about the available CPUs, memory, storage, network, GPU and power.  brief: in few lines."""
    latest = max(loaders, key=lambda loader: loader.status["time_ns"])
    own = sum({loader.key[0]: loader.sensors.get("cpu_own", 0.0) for loader in loaders}.values())
    sensors, levels = latest.sensors, latest.status["levels"]
    meters = [*_cpu(sensors, levels, own), *_memory(sensors, levels), *_storage(sensors), *_network(sensors, levels)]
    meters += [*_gpu(sensors), *_power(sensors, levels, latest.status.get("modelled", ())), *_pressure(sensors)]
    if brief:
        words = [*(meter.words for meter in meters[:1]), *(meter.words.partition(",")[0] for meter in meters[1:])]
        return wrapped("machine", [(meter.label, text) for meter, text in zip(meters, words)], width)
    meters[1:1] = _each_cpu(latest.status["cpu"], width)
    return [rule(Text("machine", style=NAME), "", width), *rows(meters, width)]


def _cpu(sensors, levels, own):
    if not levels.get("cpu_total") or "cpu_total" not in sensors:
        return
    total = sensors["cpu_total"]
    words = f"{number(total)} of {total / levels['cpu_total']:.0f}, own {number(own)}"
    words += f", others {number(max(0.0, total - own))}"
    if sensors.get("cpu_steal", 0.0) >= 0.05:
        words += f", stolen {number(sensors['cpu_steal'])}"
    yield Meter("CPU", levels["cpu_total"], words)
    if sensors.get("throttled", 0.0) > 0:
        yield Meter("quota", sensors["throttled"], f"held back {percent(sensors['throttled'])} of the time")


def _each_cpu(shares, width):
    if not shares:
        return
    blocks, group = parts.spark(shares, parts.columns(width)[1] - parts.LABEL - 20)
    if len(shares) <= FEW_CPUS:
        words = "  ".join(percent(share) for share in shares)
    else:
        words = f"{len(shares)} CPUs" + f", {group} a block" * (group > 1)
    yield Meter("each CPU", blocks, words)


def _memory(sensors, levels):
    if "mem_used" in sensors:
        used, level = sensors["mem_used"], levels.get("mem_used", 0.0)
        words = bytes_text(used) + (f" of {bytes_text(used / level)}" if level > 0 else "")
        yield Meter("memory", level, f"{words}, own {bytes_text(sensors.get('mem_own', 0.0))}")


def _storage(sensors):
    if "disk_bandwidth" not in sensors:
        return
    words = f"{bytes_text(sensors['disk_bandwidth'])}/s"
    if sensors.get("disk_latency", 0.0) > 0:
        words += f", {seconds(sensors['disk_latency'])} a request"
    if "disk_busy" in sensors:
        words = f"{percent(sensors['disk_busy'])} busy, {words}"
    yield Meter("storage", sensors.get("disk_busy"), words)


def _network(sensors, levels):
    if "net_bandwidth" in sensors:
        words = f"{bytes_text(sensors['net_bandwidth'])}/s"
        if sensors.get("net_retransmits", 0.0) > 0.001:
            words += f", {percent(sensors['net_retransmits'])} sent again"
        yield Meter("network", levels.get("net_bandwidth", 0.0), words)


def _gpu(sensors):
    if "gpu_busy" in sensors:
        words = f"{percent(sensors['gpu_busy'])} busy"
        words += f", {bytes_text(sensors['gpu_memory'])}" if "gpu_memory" in sensors else ""
        words += f", {sensors['gpu_power']:.0f} W" if "gpu_power" in sensors else ""
        yield Meter("GPU", sensors["gpu_busy"], words, style=parts.GOOD)


def _power(sensors, levels, modelled):
    if "power" in sensors:
        words = f"{sensors['power']:.1f} W" + ", by a model" * ("power" in modelled)
        yield Meter("power", levels.get("power", 0.0), words)


def _pressure(sensors):
    names = {"pressure_cpu": "CPU", "pressure_memory": "memory", "pressure_io": "storage"}
    found = {label: sensors[name] for name, label in names.items() if name in sensors}
    if found:
        words = ", ".join(f"{label} {percent(share)}" for label, share in found.items())
        yield Meter("pressure", max(found.values()), words)


# --- all loaders ---

COLUMNS = (("samples/s", 10), ("waits", 7), ("step", 9), ("workers", 8), ("ready", 8), ("limited by", 11), ("pid", 8))


def table(loaders, chosen, width, most=None):
    """Return a line for each loader, or for those around the chosen one if not all fit."""
    name_width = max(12, width - sum(size for _, size in COLUMNS) - 2)
    head = Text("  " + parts.fixed("loader", name_width), style=DIM)
    for label, size in COLUMNS:
        head.append(parts.fixed(label, size, right=True))
    shown = list(loaders)
    if most is not None and len(shown) > most:
        first = min(max(0, loaders.index(chosen) - most // 2), len(shown) - most)
        shown = shown[first : first + most]
    more = "" if len(shown) == len(loaders) else f"{len(loaders) - len(shown)} more"
    lines = [rule(Text("loaders", style=NAME), more, width), head]
    return lines + [_row(loader, loader is chosen, name_width) for loader in shown]


def _row(loader, is_chosen, name_width):
    r, flow, knobs = loader.rates, loader.flow, loader.knobs
    line = Text("▸ " if is_chosen else "  ")
    line.append(parts.fixed(loader.name, name_width), style=NAME if is_chosen else "")
    wait = r.get("wait")
    cells = (
        (number(r.get("samples", 0.0)), ""),
        ("-" if wait is None else percent(wait), "" if wait is None else parts.heat(wait, 0.05, 0.2)),
        (seconds(r["step"]) if "step" in r else "-", ""),
        (f"{flow.get('active', 0):.0f}/{knobs.get('workers', 0):.0f}", ""),
        (f"{flow.get('ready', 0):.0f}/{knobs.get('prefetch', 0):.0f}", ""),
        (loader.bound, ""),
        (str(loader.key[0]), DIM),
    )
    for (text, style), (_, size) in zip(cells, COLUMNS):
        line.append(parts.fixed(text, size, right=True), style=style)
    return line


# --- one loader ---


def one(loader, width):
    """Return lines about rates, queues, workers, memory and knobs of a loader."""
    where = Text().append(loader.name, style="bold cyan").append(f"  {loader.status['policy']}")
    right = f"pid {loader.key[0]}, {ago(loader.age)}"
    lines = [rule(where, right, width)]
    if loader.silent > SILENT:
        lines.append(Text(f"no news for {ago(loader.silent)}: paused or stopped", style="yellow"))
    meters = [_rate(loader), _wait(loader), _ready(loader), _workers(loader), _in_flight(loader), *_extras(loader)]
    return lines + rows(meters, width) + wrapped("knobs", [knob_text(*knob) for knob in loader.knobs.items()], width)


def _rate(loader):
    r = loader.rates
    words = f"{number(r.get('samples', 0.0))} samples/s, {number(r.get('batches', 0.0))} batches/s"
    if r.get("bytes_read"):
        words += f", reads {bytes_text(r['bytes_read'])}/s"
    return Meter("rate", None, words)


def _wait(loader):
    r = loader.rates
    if "wait" not in r:
        waiting = loader.flow.get("consumers", 0) > 0
        return Meter("waits", 1.0 if waiting else 0.0, "for a batch" if waiting else "no batch was asked for")
    words = f"{percent(r['wait'])} of the consumer's time"
    if "step" in r:
        words += f", step {seconds(r['step'])}"
    return Meter("waits", r["wait"], words, style=parts.heat(r["wait"], 0.05, 0.2))


def _ready(loader):
    ready, opened = loader.flow.get("ready", 0.0), loader.flow.get("open", 0.0)
    room = max(loader.knobs.get("prefetch", 0.0), opened, 1.0)
    making = max(0.0, opened - ready)
    words = f"{ready:.0f} of {room:.0f} batches, {making:.0f} being made"
    style = parts.GOOD if ready >= 1 else parts.FAIR
    return Meter("ready", ready / room, words, style=style, more=making / room)


def _workers(loader):
    active, workers = loader.flow.get("active", 0.0), loader.knobs.get("workers", 0.0)
    words = f"{active:.0f} of {workers:.0f}"
    if loader.rates.get("cpu"):
        words += f", {number(loader.rates['cpu'])} CPUs"
    if "work" in loader.rates:
        words += f", {seconds(loader.rates['work'])} a sample"
    return Meter("workers", active / workers if workers else 0.0, words, style="cyan")


def _in_flight(loader):
    used, limit = loader.flow.get("bytes", 0.0), loader.flow.get("bytes_limit", 0.0)
    if limit <= 0:
        return Meter("in flight", None, bytes_text(used))
    return Meter("in flight", used / limit, f"{bytes_text(used)} of {bytes_text(limit)}")


def _extras(loader):
    """Return lines about parts that not every pipeline has."""
    flow, r = loader.flow, loader.rates
    batch = max(flow.get("batch_samples", 0.0), 1.0)
    if loader.knobs.get("readers") or flow.get("fetched"):
        words = f"{flow.get('fetched', 0):.0f} wait for a worker"
        words += f", {seconds(r['read'])} a read" if r.get("read") else ""
        yield Meter("fetched", flow.get("fetched", 0) / batch, words, style="cyan")
    if flow.get("slow"):
        words = f"{flow.get('parked', 0):.0f} wait, {percent(r.get('slow', 0.0))} of all are slow"
        yield Meter("slow lane", flow.get("parked", 0) / batch, words, style="magenta")
    if "hits" in r or flow.get("cache_fill"):
        words = f"{percent(r.get('hits', 0.0))} found, {percent(flow.get('cache_fill', 0.0))} full"
        yield Meter("cache", r.get("hits", 0.0), words, style="green")
    if flow.get("codec_rho"):
        fit, v, rho = (percent(flow.get(f"codec_{term}", 0.0)) for term in ("compat", "v", "rho"))
        words = f"no. {flow.get('codec', 0):.0f}: U {flow.get('codec_u', 0):.2f}, "
        words += f"fit {fit}, speed {v}, ratio {rho} of the best"
        yield Meter("codec", None, words)
    if flow.get("bad"):
        yield Meter("trouble", None, f"{flow['bad']:.0f} sample{'s' * (flow['bad'] != 1)} left out or replaced")
    if flow.get("deaths"):
        yield Meter(
            "trouble", None, f"{flow['deaths']:.0f} worker{'s' * (flow['deaths'] != 1)} died, replaced by others"
        )


def knob_text(name, value):
    """Return (name, value) of a knob as text."""
    words = name.replace("_", " ")
    if name == "codec":
        return words, "chosen" if value < 0 else f"{value:.0f}"
    if value == 0 and name in NOTHING:
        return words, NOTHING[name]
    if name.endswith("_bytes"):
        return words, bytes_text(value)
    if name.endswith("_share"):
        return words, percent(value)
    return words, f"{value:g}" + " x" * (name == "lane_threshold")


NOTHING = {"prefetch_bytes": "no limit", "lane_share": "auto", "cpu_ceiling": "none", "priority": "normal"}


# --- decisions ---


def decisions(loader, width, room=None):
    """Return lines of the last decision and those with changes, newest first, each with its age and reason."""
    if not loader.last or (room is not None and room < 2):
        return []
    turned = [decision for decision in reversed(loader.decisions) if decision["number"] != loader.last["number"]]
    right = f"{sum(loader.status['bounds'].values())} so far"
    lines = [rule(Text(f"decisions, limited by {loader.bound}", style=NAME), right, width)]
    for decision in (loader.last, *turned):
        lines += _decision(decision, loader.now, width)
    return lines[:room]


def _decision(decision, now, width):
    style = NAME if decision["changes"] else ""
    change = changes_text(decision["changes"])
    reason = (decision["reason"] or "").strip() or "no reason given"
    words = "guard: " * decision["guarded"] + f"{change}: " * bool(change) + reason
    first, *rest = textwrap.wrap(words, max(20, width - parts.LABEL))
    line = Text().append(f"{ago(now - decision['time_ns'] * 1e-9):>{parts.LABEL - 2}}  ", style=DIM)
    line.append(first, style=style)
    return [line, *(Text(" " * parts.LABEL).append(text, style=style) for text in rest)]
