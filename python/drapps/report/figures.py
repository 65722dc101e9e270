"""The key figures of a run."""

import math
from typing import NamedTuple

COMPONENTS = {  # parts of the machine, with the sensors (0 to 1) that measure their use
    "CPU": "cpu_total", "memory": "mem_used", "storage": "disk_busy", "GPU": "gpu_busy",
}  # fmt: skip


class Spread(NamedTuple):
    """The distribution of some values."""

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


class Use(NamedTuple):
    """A sensor over a run, weighted by time."""

    mean: float
    peak: float


def quantile(ordered, q):
    """Return a quantile of sorted values, with linear interpolation as NumPy's default."""
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(ordered):
    """Return the spread of sorted values; None without values."""
    if not ordered:
        return None
    return Spread(len(ordered), math.fsum(ordered) / len(ordered), *(quantile(ordered, q) for q in (0.5, 0.95, 0.99)),
                  ordered[-1])  # fmt: skip


def integral(clock, values, longest=math.inf):
    """Return the area under a line and the time over which it is known; a longer step than `longest` counts as that."""
    area = time = 0.0
    last = None
    for t, v in zip(clock, values):
        if v is None:
            continue
        if last is not None and t > last[0]:
            step = min(t - last[0], longest)
            area += step * (v + last[1]) / 2
            time += step
        last = (t, v)
    return area, time


def use(clock, values):
    """Return mean and peak of a sensor; None if it was always absent."""
    seen = [v for v in values if v is not None]
    if not seen:
        return None
    area, time = integral(clock, values)
    return Use(area / time if time else seen[-1], max(seen))


class Figures:
    """The figures of a run as a whole; None: not known."""

    def __init__(self, run):
        self.seconds = run.seconds
        self.samples, self.batches = run.grown("samples"), run.grown("batches")
        self.samples_per_s = _per(self.samples, _flow_seconds(run))
        self.read_per_s = _per(run.grown("bytes_read"), _flow_seconds(run)) or None
        self.made_per_s = _made(run, self.samples_per_s)
        self.wait_s, self.step_s = _wait_and_step(run)
        self.wait_share = _share(self.wait_s, self.step_s, _flow_seconds(run))
        self.accelerator = None if self.wait_share is None else 1 - self.wait_share
        self.latency = spread(run.times("batch"))
        self.latency_mean = self.latency.mean if self.latency else _per(run.grown("latency"), run.grown("batches"))
        self.wait = spread(run.times("wait"))
        self.use = {name: use(run.snapshot_clock, run.sensor(name)) for name in _sensor_names(run)}
        self.level = {name: use(run.snapshot_clock, run.level(name)) for name in _sensor_names(run)}
        self.components = self._components()
        self.worked = run.grown("worked") or self.samples
        self.cpu_s = _cpu_seconds(run)
        self.cpu_ms_per_sample = _per(self.cpu_s, self.worked, 1000)
        self.read_ms, self.work_ms = (_per(run.grown(name), self.worked, 1000) for name in ("read", "work"))
        self.blocked_ms = _blocked(run, self.worked)
        self.ranges = _ranges(run)
        self.server = _server(run)
        self.bad, self.deaths = run.grown("bad") or 0, run.grown("deaths") or 0

    def _components(self):
        """Return the mean use of each part of the machine; without a GPU sensor, the consumer's
        step counts as the GPU."""
        found = {part: self.level[name].mean for part, name in COMPONENTS.items() if self.level.get(name)}
        if "GPU" not in found and self.accelerator is not None:
            found["consumer's step"] = self.accelerator
        return found

    @property
    def efficiency(self):
        """The mean use of the parts of the machine."""
        return sum(self.components.values()) / len(self.components) if self.components else None

    @property
    def imbalance(self):
        """The standard deviation of the use of the parts; 0: all parts are used evenly."""
        if len(self.components) < 2:
            return None
        return math.sqrt(sum((v - self.efficiency) ** 2 for v in self.components.values()) / len(self.components))


def _ranges(run):
    """Return (samples, bytes read, bytes stored) of images that were read in ranges; None: of none."""
    for event in run.events:
        found = [event.get(name) for name in ("samples", "bytes_read", "bytes_stored")]
        if event.get("event") == "ranges" and all(type(value) is int and value > 0 for value in found):
            return found
    return None


def _server(run):
    """Return the sums of a set on a drapps server, by name; None: there was none."""
    names = ("plain", "samples", "packed", "shed", "segments", "segment_bytes", "segment_stored")
    sums = dict.fromkeys(names, 0)
    found = False
    for event in run.events:
        values = [event.get(name) for name in names]
        if event.get("event") == "offloaded" and all(type(value) is int and value >= 0 for value in values):
            sums = {name: sums[name] + value for name, value in zip(names, values, strict=True)}
            found = True
    return sums if found else None


def _sensor_names(run):
    names = {}
    for snapshot in run.snapshots:
        names.update(dict.fromkeys(snapshot))
    return names


def _flow_seconds(run):
    return run.flow_clock[-1] - run.flow_clock[0] if run.flows else 0


def _wait_and_step(run):
    """Return seconds of waiting and of steps, from the flow, else from the spans."""
    found = [run.grown(name) for name in ("wait", "step")]
    if not any(found):
        traced = [run.times(kind) for kind in ("wait", "step")]
        found = [math.fsum(times) if times else known for times, known in zip(traced, found)]
    return found


def _made(run, samples_per_s):
    """Return the bytes of batches per second, from the last known size of a batch; None: not known."""
    batch, samples = ([v for v in run.gauge(name) if v] for name in ("batch_bytes", "batch_samples"))
    return batch[-1] / samples[-1] * samples_per_s if batch and samples and samples_per_s else None


def _share(wait, step, seconds):
    if wait is None:
        return None
    whole = wait + step if step else max(seconds, wait)
    return wait / whole if whole > 0 else None


def _cpu_seconds(run):
    """Return the CPU time of the workers; if unknown, of the whole process."""
    grown = run.grown("cpu")
    if grown:
        return grown
    area, time = integral(run.snapshot_clock, run.sensor("cpu_own"))
    return area if time else None


def _blocked(run, worked):
    """Return the milliseconds per sample in which a worker process neither ran nor waited for a
    CPU; None: not known."""
    if run.meta.get("kind") != "processes":
        return None
    work, cpu, delay = (_per(run.grown(name), worked, 1000) for name in ("work", "cpu", "delay"))
    return None if None in (work, cpu, delay) else max(0.0, work - cpu - delay)


def _per(amount, count, scale=1):
    return amount / count * scale if amount is not None and count else None
