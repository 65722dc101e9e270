"""Calibrate: measures a machine with a data set for at most a minute, and makes a profile for the simulator.

What is measured, with files in the page cache unless it says otherwise:

    alone      1 worker, a consumer that only takes: CPU time of a sample, and for how long it is blocked
    crowd      as many workers as CPUs: how much more CPU time a sample takes then
    switches   twice as many: the same for threads in a CPU's queue
    single     samples one by one: how their times vary
    handover   1 worker and a prefetch window of 1: what a batch costs beyond its samples
    waking     twice as many workers as CPUs, and a consumer that sleeps: for how long it waits for a CPU
    storage    files that are dropped from the page cache, read by one thread and by eight
"""

import glob
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from drapps import _core
from drapps.sim.engine_run import EngineRun, Setting, rate_of, sleep_error
from drapps.sim.machine_profile import MachineProfile

MOST_SAMPLES = 2000  # of the data set: so many are read into the page cache
SLOW_TIMES = 4  # times the median, as the threshold of the lanes
READ_THREADS = 8


def calibrate(make, *, batch_size=64, seconds=60.0, tell=lambda text: None):
    """Return the MachineProfile of this machine for a pipeline.  make(): opens the pipeline."""
    pipe = make()
    n = min(len(pipe), MOST_SAMPLES)
    if n < 1:
        raise _core.ArgumentError("calibrate: the data set has no samples")
    limits = json.loads(_core.info())["limits"]
    cpus = max(int(limits["affinity_cpus"]), 1)
    batch_size = min(batch_size, n)
    slot = seconds / 12
    probe = _Probe(make, n, batch_size, tell)
    probe.warm_up(2 * slot)
    alone = probe.run("alone", Setting(1, prefetch=4), 2 * slot)
    crowd = probe.run("crowd", Setting(cpus, prefetch=4 + cpus), 2 * slot) if cpus > 1 else alone
    queue = probe.run("switches", Setting(2 * cpus, prefetch=4 + 2 * cpus), slot)
    handover = probe.run("handover", Setting(1, prefetch=1), slot)
    overhead, step = sleep_error(), 1.35 * batch_size * crowd["cpu"] / cpus
    waking = probe.run("waking", Setting(2 * cpus, prefetch=8, step=step), slot)
    tell("single samples")
    single = _single_samples(pipe, n, slot)
    tell("storage")
    storage = _storage(pipe, n, slot)
    fields = {
        **_machine(limits, cpus, storage),
        **_costs(alone, crowd, queue, cpus),
        **single.fields,
        **_data(pipe, n, alone),
        "batch": batch_size,
        "lag": min(max(batch_size * (1 / handover["rate"] - handover["read"] - handover["work"]), 1e-5), 10),
        "jitter": min(max(batch_size / waking["rate"] - step - overhead, 0), 0.02),
    }
    facts = {"data": str(pipe), "samples_used": n, "ops": single.ops, "alone": alone, "crowd": crowd,
             "switches": queue, "handover": handover, "waking": waking, "storage": storage,
             "sleep_error": overhead}  # fmt: skip
    return MachineProfile(fields, facts)


# --- runs of the loader ---


class _Probe:
    """Runs of the loader over the same samples."""

    def __init__(self, make, n, batch_size, tell):
        self._make, self._n, self._batch_size, self._tell = make, n, batch_size, tell

    def warm_up(self, seconds):
        """Read all samples once, as far as there is time, so that the page cache and indexes have them."""
        self._tell("warm-up")
        with self._open(Setting(max(os.cpu_count() or 1, 1), prefetch=4)) as run:
            begun = time.perf_counter()
            for _ in range(-(-self._n // self._batch_size)):
                run.consume(0.001)
                if time.perf_counter() - begun > seconds:
                    break

    def run(self, name, setting, seconds):
        """Return rate, CPU time and thread time of a sample."""
        self._tell(name)
        with self._open(setting) as run:
            run.consume(min(0.5, seconds / 4))
            before, delay = run.loader.stats(), _run_delay()
            cpu, own = time.process_time(), time.thread_time()
            marks = run.consume(seconds)
            cpu, delay = time.process_time() - cpu - (time.thread_time() - own), _run_delay() - delay
            after = run.loader.stats()
        made = max(after["samples"] - before["samples"], 1)
        return {"rate": rate_of(marks), "cpu": cpu / made, "delay": max(delay, 0) / made,
                "read": (after["read_ns"] - before["read_ns"]) / made / 1e9,
                "work": (after["work_ns"] - before["work_ns"]) / made / 1e9,
                "bytes": (after["bytes_read"] - before["bytes_read"]) / made}  # fmt: skip

    def _open(self, setting):
        return EngineRun(self._make, self._n, self._batch_size, setting)


def _run_delay():
    """Seconds for which threads of this process could run and had no CPU; 0 where the kernel does not tell."""
    total = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        with suppress(OSError, ValueError, IndexError), open(path, encoding="ascii") as file:
            total += int(file.read().split()[1])
    return total * 1e-9


def _costs(alone, crowd, queue, cpus):
    """CPU time of a sample, what crowds add to it, and blocked time."""
    cpu = alone["cpu"]
    more = crowd["cpu"] / cpu - 1 if cpus > 1 else 0.0
    return {
        "cpu": cpu,
        "cpu_speed": 1,
        "crowd": min(max(more, 0), 4),
        "switch_cost": min(max(queue["cpu"] / crowd["cpu"] - 1, 0), 1),
        "cached_read": min(max(alone["read"] + alone["work"] - cpu - alone["delay"], 1e-6), 10),
        "blocked": 0,
    }


# --- single samples ---


class _Single:
    """How the times of samples vary, and the share of each op."""

    def __init__(self, times, ops):
        self.ops = ops
        median = statistics.median(times)
        slow = [t for t in times if t >= SLOW_TIMES * median]
        rest = [t for t in times if t < SLOW_TIMES * median]
        mean = statistics.fmean(rest)
        self.fields = {"cpu_cv": min(statistics.pstdev(rest) / mean, 10) if mean else 0, "slow_share": 0}
        if len(slow) >= 2:
            self.fields["slow_share"] = min(len(slow) / len(times), 0.5)
            self.fields["slow_factor"] = min(max(statistics.fmean(slow) / mean, 1), 1000)


def _single_samples(pipe, n, seconds):
    times, end = [], time.perf_counter() + seconds
    for i in range(0, n, max(n // 300, 1)):
        begun = time.thread_time()
        pipe[i]
        times.append(time.thread_time() - begun)
        if time.perf_counter() > end and len(times) >= 8:
            break
    ops = {}
    with suppress(_core.Error, AttributeError), pipe.loader(1, workers=0, policy="off") as loader:
        for op in loader.profile(min(n, 64))["ops"]:
            ops[op["op"]] = ops.get(op["op"], 0.0) + op["us"] * 1e-6
    return _Single(times, ops)


# --- storage ---


def _storage(pipe, n, seconds):
    """Latency, bandwidth and depth of reads that the page cache does not have; {} where there are no files."""
    paths = _paths(pipe, n)
    if len(paths) < 4:
        return {}
    half = len(paths) // 2
    one, many = paths[:half], paths[half:]
    for path in paths:
        _forget(path)
    end = time.perf_counter() + seconds / 2
    alone = [found for path in one if time.perf_counter() < end and (found := _timed_read(path))]
    begun = time.perf_counter()
    with ThreadPoolExecutor(READ_THREADS) as pool:
        together = [found for found in pool.map(_timed_read, many) if found]
    whole = time.perf_counter() - begun
    if len(alone) < 2 or not together:
        return {}
    each = statistics.fmean(t for t, _ in alone)
    return {"alone_s": each, "rate": len(together) / whole, "bandwidth": sum(b for _, b in together) / whole,
            "bytes": statistics.fmean(b for _, b in alone)}  # fmt: skip


def _paths(pipe, n):
    from drapps.plan.page_cache import files_of

    with suppress(AttributeError, _core.Error, OSError):
        return files_of(pipe._dataset, range(min(n, 200)))
    return []


def _forget(path):
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def _timed_read(path):
    begun = time.perf_counter()
    try:
        with open(path, "rb", buffering=0) as file:
            size = len(file.read())
    except OSError:
        return None
    return time.perf_counter() - begun, size


def _machine(limits, cpus, storage):
    found = {"cpus": cpus, "warm": 1, "memory_bw": 1e13}  # crowd has what a full memory bus costs
    quota = limits.get("quota_cpus")
    if quota and quota < cpus:
        found["quota"] = quota
    if limits.get("memory_bytes"):
        found["memory"] = max(limits["memory_bytes"], 1e8)
        found["page_cache"] = found["memory"] / 2
    if storage:
        latency = max(storage["alone_s"], 1e-6)
        found["read_latency"] = latency
        found["read_bw"] = min(max(storage["bandwidth"], storage["bytes"] / latency), 1e13)
        found["read_depth"] = max(storage["rate"] * latency, 1)
    return found


def _data(pipe, n, alone):
    found = {"samples": len(pipe)}
    if alone["bytes"] > 0:
        found["sample_bytes"] = alone["bytes"]
    with suppress(Exception):
        found["out_bytes"] = sum(a.nbytes for a in pipe[0].values() if hasattr(a, "nbytes"))
    return found
