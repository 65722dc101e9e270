"""What the machine did during a phase: the monitor's snapshots, and the kernel's counters of own threads."""

import os
import time
from contextlib import suppress
from pathlib import Path

from drapps.build_info import info
from drapps.bench.process import tree
from drapps.monitor import Monitor

NS = 1e-9


class Counters:
    """Counters of this process and its descendants, by thread; a difference of two is what happened between them."""

    def __init__(self):
        self.time = time.monotonic()
        self.pids = tree(os.getpid())  # this process is the first
        self.cpu, self.delay, self.device_bytes = {}, {}, {}
        for pid in self.pids:
            self._read(pid)

    def _read(self, pid):
        """Threads and processes may end at any time; what cannot be read is left out."""
        with suppress(OSError, ValueError, IndexError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                cpu, delay, _ = (thread / "schedstat").read_text().split()
                self.cpu[thread.name], self.delay[thread.name] = int(cpu) * NS, int(delay) * NS
        with suppress(OSError, ValueError, IndexError):
            lines = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
            self.device_bytes[pid] = int(lines["read_bytes"])


def between(before, after, name):
    """How much a counter grew; None where the kernel does not have it."""
    old, new = getattr(before, name), getattr(after, name)
    return sum(value - old.get(key, 0) for key, value in new.items()) if new else None


def cpu_delay():
    """Seconds for which this thread could have run and had no CPU; 0 where the kernel does not tell."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * NS
    return 0.0


class Host:
    """Watches the machine as long as it is open."""

    def __init__(self):
        self.monitor = Monitor(history=1200)
        self.limits = info()["limits"]
        self._watched = set()

    def mark(self):
        """A point in time, for `since`; processes that came up count as own from now on."""
        counters = Counters()
        for pid in set(counters.pids[1:]) - self._watched:
            with suppress(Exception):  # it has just ended
                self.monitor.watch(pid)
            self._watched.add(pid)
        return counters, self.monitor.latest().number

    def since(self, mark):
        """Means of the time since a mark, by the names of Facts."""
        before, number = mark
        after = Counters()
        snapshots = self.monitor.history(number)
        cpu, delay = between(before, after, "cpu"), between(before, after, "delay")
        seen = {name: mean(snapshots, name) for name in ("cpu_own", "cpu_foreign", "cpu_steal", "throttled",
                                                         "disk_busy", "disk_latency")}  # fmt: skip
        seen["delayed"] = delay / (cpu + delay) if cpu else None
        seen["cpu_seconds"] = cpu
        seen["device_bytes"] = between(before, after, "device_bytes")
        return seen

    def cpus(self):
        """(CPUs that the process may use, and might use without a quota)."""
        affinity, quota = self.limits["affinity_cpus"], self.limits["quota_cpus"]
        return min(affinity, quota or affinity), affinity

    def close(self):
        self.monitor.close()


def mean(snapshots, name):
    """Mean of a sensor; None where it is absent."""
    values = [snapshot[name] for snapshot in snapshots if name in snapshot]
    return sum(values) / len(values) if values else None
