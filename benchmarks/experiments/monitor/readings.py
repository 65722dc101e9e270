"""Reads the monitor, and the clocks that it is compared with."""

import json
import math
import os
import statistics
import subprocess
import sys
import time

from benchmarks import child_environment
from benchmarks.experiments.monitor.monitor_findings import NotPossible
from drapps.monitor import Monitor

THREAD, TRACER = "dr-monitor", "drapps-trace"  # names of the threads of a monitor and of a trace


def opened(seconds, interval=0.1):
    """Return a monitor that keeps all snapshots of some seconds."""
    return Monitor(interval=interval, history=math.ceil(seconds / interval) + 20)


def watch(monitor, seconds):
    """Return the snapshots of the next seconds, at least three."""
    first = monitor.latest().number
    time.sleep(seconds)
    monitor.wait(after=first + 2)
    return monitor.history(after=first)


def mean(snapshots, name):
    """Return the mean of a sensor over the snapshots that have it."""
    values = [snapshot[name] for snapshot in snapshots if name in snapshot]
    if not values:
        raise NotPossible(f"the sensor {name} is absent")
    return statistics.fmean(values)


def percentile(values, q):
    """Return the smallest value that a share q of the values does not exceed.

    >>> percentile([5, 1, 2, 3, 4], 0.8), percentile([1, 2], 0.99)
    (4, 2)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def threads_named(wanted):
    """Return the ids of this process's threads of that name."""
    def name(task):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                return file.read().strip()
        except OSError:  # a thread that has just ended
            return None

    return [int(task) for task in os.listdir("/proc/self/task") if name(task) == wanted]


def monitor_threads():
    """Return the ids of this process's monitor threads."""
    return threads_named(THREAD)


def thread_seconds(task):
    """Return the CPU time of a thread of this process, by its CPU clock (pthread_getcpuclockid)."""
    return time.clock_gettime(~task << 3 | 6)


class ThreadShare:
    """The CPU share of the process's only thread of that name, since the construction of this object."""

    def __init__(self, name=THREAD):
        (self._task,) = threads_named(name)
        self._begun, self._used = time.monotonic(), thread_seconds(self._task)

    def get(self):
        """Return the share until now."""
        return (thread_seconds(self._task) - self._used) / (time.monotonic() - self._begun)


def run_child(name, *arguments, before=(), enter=None, environment=None, package=__package__):
    """Run a program of a package; return the JSON that it prints.  before: command prefix; enter:
    called in the child."""
    command = [*before, sys.executable, "-m", f"{package}.{name}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=enter,
                          env=child_environment(**(environment or {})))  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{name} ended with {done.returncode}: {last}")
    return json.loads(done.stdout.splitlines()[-1])
