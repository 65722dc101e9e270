"""The machine during a phase: the monitor's snapshots, and the kernel's counters of own threads."""

import os
import time
from contextlib import suppress
from pathlib import Path

from drapps.build_info import info
from drapps.bench.process import tree
from drapps.monitor import Monitor

NS = 1e-9


class Counters:
    """Counters of this process and its descendants, by thread."""

    def __init__(self):
        self.time = time.monotonic()
        self.pids = tree(os.getpid())  # this process is the first
        self.cpu, self.delay, self.device_bytes = {}, {}, {}
        for pid in self.pids:
            self._read(pid)

    def _read(self, pid):
        """Read the counters of a process; threads and processes that end meanwhile are left out."""
        with suppress(OSError, ValueError, IndexError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                cpu, delay, _ = (thread / "schedstat").read_text().split()
                self.cpu[thread.name], self.delay[thread.name] = int(cpu) * NS, int(delay) * NS
        with suppress(OSError, ValueError, IndexError):
            lines = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
            self.device_bytes[pid] = int(lines["read_bytes"])


def between(before, after, name):
    """Return the growth of a counter; None if the kernel does not have it."""
    old, new = getattr(before, name), getattr(after, name)
    return sum(value - old.get(key, 0) for key, value in new.items()) if new else None


def cpu_delay():
    """Return the seconds in which this thread was runnable without a CPU; 0 if the kernel does not tell."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * NS
    return 0.0


class Host:
    """Watches the machine until it is closed."""

    def __init__(self):
        self.monitor = Monitor(history=1200)
        self.limits = info()["limits"]
        self._watched = set()

    def mark(self):
        """Return a mark for `since`; new descendants count as own from now on."""
        counters = Counters()
        for pid in set(counters.pids[1:]) - self._watched:
            with suppress(Exception):  # it has just ended
                self.monitor.watch(pid)
            self._watched.add(pid)
        return counters, self.monitor.latest().number

    def since(self, mark):
        """Return the means of the time since a mark, by the names of Facts."""
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
        """Return (CPUs that the process may use, CPUs that it could use without a quota)."""
        affinity, quota = self.limits["affinity_cpus"], self.limits["quota_cpus"]
        return min(affinity, quota or affinity), affinity

    def close(self):
        self.monitor.close()


def mean(snapshots, name):
    """Return the mean of a sensor; None if it is absent."""
    values = [snapshot[name] for snapshot in snapshots if name in snapshot]
    return sum(values) / len(values) if values else None
