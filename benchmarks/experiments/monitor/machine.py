"""Tests of ticks, CPUs and memory."""

import os
import statistics
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.experiments.disturb import MemoryLimit, load, moved
from benchmarks.experiments.monitor.monitor_findings import NotPossible, judged
from benchmarks.experiments.monitor.readings import mean, opened, percentile, run_child, watch
from drapps.monitor import Monitor

MB, PASS = 2**20, 2**20  # bytes; PASS: of a pass of the memory bandwidth probe, which makes two a second at most
SETTLE, MOVE = 2.0, 2.0  # seconds: until memory is under load; of counting what threads move
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


# --- ticks ---


def interval(options):
    """Test that snapshots come when they are due."""
    with Monitor() as monitor:
        default = monitor.interval
    yield _ticks("100 ms by default", default, 6 * options.seconds, default == 0.1)
    yield _ticks("250 ms as set", 0.25, options.seconds)
    yield _ticks("1 s as set", 1.0, options.seconds)


def _ticks(what, wanted, seconds, right=True):
    with opened(seconds, wanted) as monitor:
        snapshots = watch(monitor, max(seconds, 3 * wanted))
    gaps = [b.time - a.time for a, b in pairwise(snapshots)]
    off = [abs(gap - wanted) for gap in gaps]
    middle, late, worst = statistics.fmean(gaps), percentile(off, 0.99), max(off)
    return judged(f"{what}, p99 of the jitter below 20 ms on an idle machine",
                  f"mean {middle * 1e3:.2f} ms; off by {late * 1e3:.2f} ms at p99, {worst * 1e3:.2f} ms at most, of "
                  f"{len(gaps)}; {mean(snapshots, 'cpu_total'):.2f} CPUs were in use",
                  right and abs(middle - wanted) < 0.01 * wanted and late < 0.02,
                  wanted=wanted, mean=middle, p99=late, worst=worst, n=len(gaps))  # fmt: skip


# --- CPUs ---


def cpu(options):
    """Test the CPU sensors while half of one CPU is burnt."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise NotPossible("there is one CPU")
    burnt, others = cpus[-1], cpus[:-1]
    with load("cpu", options.seconds + 60, "--level", 0.5, cpus={burnt}), opened(options.seconds + 2) as monitor:
        time.sleep(0.5)
        snapshots = watch(monitor, options.seconds)
    use = {k: statistics.fmean(snapshot.cpu[k] for snapshot in snapshots) for k in cpus}
    busiest = max(use[k] for k in others)
    yield judged("a CPU that is burnt to 50 %: 0.5 ± 0.05; each other CPU below 0.1",
                 f"{use[burnt]:.3f}; {busiest:.3f} at most, over {options.seconds:g} s",
                 abs(use[burnt] - 0.5) <= 0.05 and busiest < 0.1, use=use, burnt=burnt)  # fmt: skip


# --- memory ---


def memory(options):
    """Test the memory sensors while a child allocates memory: without a limit, then in a group with a limit."""
    size = options.memory_mb * MB
    with Monitor() as monitor:
        free = monitor.latest()["mem_available"]
    if free < 1.5 * size:
        raise NotPossible(f"{free / 1e9:.1f} GB of memory are free")
    found = run_child("memory_child", size)
    yield _rise(f"{options.memory_mb} MB are allocated: the reading rises by that, ± 5 %", found, size)
    limit, part = size // 2, size // 8
    try:
        group = MemoryLimit(limit)
    except SystemExit as error:
        raise NotPossible(str(error)) from None
    try:
        found = run_child("memory_child", part, enter=lambda: group.add(os.getpid()))
    finally:
        group.close()
    yield judged("a control group's limit counts as all memory", f"limit {limit / MB:.0f} MB, reads "
                 f"{found['all'] / MB:.1f} MB", abs(found["all"] / limit - 1) < 0.01, limit=limit, **found)  # fmt: skip
    yield _rise(f"{part // MB} MB are allocated in that group: the reading rises by that, ± 5 %", found, part)


def _rise(aim, found, size):
    rise = found["after"] - found["before"]
    return judged(aim, f"{rise / MB:.1f} MB: {rise / size - 1:+.2%}", abs(rise / size - 1) <= 0.05, size=size, **found)


def cache_bytes(folder=CACHES):
    """Return the size of the largest cache of a CPU; 0: unknown."""
    units = {"K": 1024, "M": MB}
    texts = [path.read_text().strip() for path in Path(folder).glob("index*/size")]
    return max((int(text[:-1]) * units[text[-1]] for text in texts if text[-1:] in units), default=0)


def memory_bandwidth(options):
    """Test the bandwidth sensor while every CPU streams through twice the size of the last-level cache."""
    cpus = len(os.sched_getaffinity(0))
    with opened(2 * options.seconds + 4) as monitor:
        room = monitor.latest()["mem_available"] / 2 / cpus
        size = int(min(max(256 * MB, 2 * cache_bytes()), room) // MB)
        calm = mean(watch(monitor, options.seconds), "mem_bandwidth")
        with load("memory", options.seconds + 60, "--threads", cpus, "--size", size):
            time.sleep(SETTLE)
            loaded = mean(watch(monitor, options.seconds), "mem_bandwidth")
    alone, all_of_them = (moved("memory", MOVE, "--threads", n, "--size", size) for n in (1, cpus))
    yield judged("the reading falls by 30 % or more while every CPU streams through memory",
                 f"{calm / 1e9:.1f} to {loaded / 1e9:.1f} GB/s: {loaded / calm - 1:+.0%}, beside {cpus} threads with "
                 f"{size} MB each, which move {all_of_them / alone:.2f} times as much as one of them",
                 loaded <= 0.7 * calm, calm=calm, loaded=loaded, alone=alone, together=all_of_them)  # fmt: skip
    took = PASS / min(calm, loaded)
    yield judged("its probe uses 0.2 % of a CPU at most", f"{2 * took:.3%}: twice a second {took * 1e6:.0f} µs",
                 2 * took <= 0.002, pass_seconds=took)  # fmt: skip
