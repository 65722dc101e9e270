"""Traces for tests of what reads them: objects like those of drapps.trace, made by hand."""

import math
import random
from types import SimpleNamespace
from typing import NamedTuple


class Flow(NamedTuple):
    time: float
    values: dict


class Reading(dict):
    """A snapshot."""

    def __init__(self, time, values, levels=(), cpu=(), modelled=()):
        super().__init__(values)
        self.time, self.levels, self.cpu, self.modelled = time, dict(levels), tuple(cpu), frozenset(modelled)


def decision(number, time, bound="cpu", changes=None, reason="", reward=0.5, guarded=False):
    return SimpleNamespace(
        number=number,
        time=time,
        bound=bound,
        changes=changes or {},
        reward=reward,
        terms={},
        weights={},
        guarded=guarded,
        reason=reason,
    )


def span(kind, begin, end, key="", id=0, batch=0, slow=False, bytes=0, thread=1, cpu=0.0):
    return SimpleNamespace(
        kind=kind,
        begin=begin,
        end=end,
        thread=thread,
        epoch=0,
        batch=batch,
        position=id,
        id=id,
        bytes=bytes,
        cost=0.0,
        slow=slow,
        key=key,
        cpu=cpu,
    )


def trace(meta=None, snapshots=(), flow=(), decisions=(), spans=(), events=(), knobs=()):
    return SimpleNamespace(
        meta=meta or {},
        snapshots=list(snapshots),
        flow=list(flow),
        decisions=list(decisions),
        spans=list(spans),
        events=list(events),
        knobs=list(knobs),  # (time, {knob: value}) after each decision
        ended="closed",
        missing={"lost": 0, "left_out": 0},
    )


def steady(seconds=10, rate=100.0, wait=0.25, batch=10, start=1000.0, interval=0.1):
    """Everything as even as can be: a consumer that waits `wait` of its time, one CPU of two busy, 36 W."""
    n = round(seconds / interval) + 1
    times = [start + i * interval for i in range(n)]
    flow = [
        Flow(
            t,
            {
                "samples": rate * (t - start),
                "worked": rate * (t - start),
                "batches": rate * (t - start) / batch,
                "wait": wait * (t - start),
                "step": (1 - wait) * (t - start),
                "read": 0.2 * (t - start),
                "work": 0.8 * (t - start),
                "cpu": 0.9 * (t - start),
                "ready": 2,
                "open": 4,
                "active": 1,
                "bytes": 5e6,
                "bytes_limit": 1e9,
            },
        )
        for t in times
    ]
    levels = {
        "cpu_total": 0.5,
        "cpu_own": 0.45,
        "cpu_foreign": 0.05,
        "mem_used": 0.3,
        "disk_busy": 0.1,
        "io_wait": 0.02,
    }
    values = {
        "cpu_total": 1.0,
        "cpu_own": 0.9,
        "cpu_foreign": 0.1,
        "mem_used": 3e9,
        "disk_busy": 0.1,
        "io_wait": 0.04,
        "power": 36.0,
    }
    return trace(flow=flow, snapshots=[Reading(t, values, levels, (0.9, 0.1), ["power"]) for t in times])


def busy(seconds=600, seed=1, start=5000.0, cpus=4):
    """A run as machines make them: phases, noise, a pause, decisions, slow samples."""
    made = _Busy(seconds, seed, start, cpus)
    told = trace(made.meta(), made.snapshots, made.flow, made.decisions, made.spans, made.events, made.knobs)
    told.missing = {"lost": 0, "left_out": 9120}
    return told


PHASES = (  # until (of the run), bound, share of waiting, CPUs of others, workers
    (0.15, "workers", 0.45, 0.1, 1),
    (0.45, "consumer", 0.01, 0.1, 3),
    (0.7, "others", 0.3, 2.4, 4),
    (0.85, "storage", 0.5, 0.2, 4),
    (1.01, "consumer", 0.02, 0.1, 3),
)


class _Busy:
    def __init__(self, seconds, seed, start, cpus):
        self.random, self.cpus, self.start, self.seconds = random.Random(seed), cpus, start, seconds
        self.snapshots, self.flow, self.decisions, self.spans, self.events = [], [], [], [], []
        self.sums = dict.fromkeys(
            ("samples", "worked", "batches", "wait", "step", "read", "work", "cpu", "bytes_read"), 0.0
        )
        self.workers, self.knobs = 1, []
        for i in range(round(seconds * 10)):
            self.tick(start + i / 10, next(p for p in PHASES if i < p[0] * seconds * 10), i)

    def meta(self):
        return {
            "drapps": "0.1.0",
            "data": "photos",
            "format": "folder",
            "samples": 12000,
            "machine": {"cpus": 4.0, "memory": 16000000000, "host": "testbed"},
            "clock": {"name": "CLOCK_MONOTONIC", "start_ns": 5000000000000, "unix_ns": 1794822412043885819},
            "settings": {"batch_size": 64, "seed": 0, "policy": "analytic"},
            "ops": [
                {"op": "decode", "us": 610.0},
                {"op": "random_resized_crop", "us": 240.0},
                {"op": "random_horizontal_flip", "us": 11.0},
                {"op": "normalize", "us": 85.0},
            ],
        }

    def tick(self, t, phase, i):
        _, bound, wait, foreign, workers = phase
        noise = self.random.gauss
        wait = min(1, max(0, noise(wait, 0.03)))
        rate = 900 * (1 - wait)
        own = min(self.cpus - foreign, 0.4 + workers * 0.6) + noise(0, 0.05)
        grow = {
            "samples": rate,
            "worked": rate,
            "batches": rate / 64,
            "wait": wait,
            "step": 1 - wait,
            "cpu": own,
            "read": workers * (0.6 if bound == "storage" else 0.1),
            "work": own * 0.8,
            "bytes_read": rate * 1.1e5,
        }
        for name, value in grow.items():
            self.sums[name] += value / 10
        ready = 0 if wait > 0.1 else 4 + round(noise(0, 1))
        self.flow.append(
            Flow(
                t,
                {
                    **self.sums,
                    "ready": ready,
                    "open": 6,
                    "active": workers,
                    "fetched": 12 if workers > 3 else 0,
                    "parked": 2 if i % 50 < 5 else 0,
                    "bytes": 3e8 + 1e7 * noise(0, 1),
                    "bytes_limit": 1e9,
                },
            )
        )
        self.read_sensors(t, bound, own, max(0, noise(foreign, 0.1)), i)
        if i % 10 == 9:
            self.decide(t, bound, workers)
        if i % 2 == 0:
            self.span_some(t, i, wait)
        if i % 2000 == 0:
            self.events.append({"t": t, "event": "start", "epoch": i // 2000})

    def read_sensors(self, t, bound, own, foreign, i):
        noise, n = self.random.gauss, self.cpus
        total = min(n, own + foreign)
        use = [min(1, max(0, total / n + noise(0, 0.15))) for _ in range(n)]
        values = {
            "cpu_total": total,
            "cpu_own": own,
            "cpu_foreign": foreign,
            "cpu_steal": 0.02,
            "io_wait": 0.1,
            "mem_used": 5e9 + 1e9 * math.sin(i / 900),
            "mem_own": 1.6e9,
            "disk_busy": 0.9 if bound == "storage" else 0.1,
            "disk_bandwidth": abs(noise(9e7, 1e7)),
            "net_bandwidth": abs(noise(1e6, 5e5)),
            "pressure_cpu": min(1, total / n * 0.4),
            "pressure_io": 0.6 if bound == "storage" else 0.03,
            "pressure_memory": 0.0,
            "power": 3 + 3 * total,
            "batch_latency": 0.09 + (4.0 if i == 3333 else 0.0),
            "disk_latency": abs(noise(0.002, 0.001)),
        }
        levels = {
            "cpu_total": total / n,
            "cpu_own": own / n,
            "cpu_foreign": foreign / n,
            "mem_used": values["mem_used"] / 16e9,
            "disk_busy": values["disk_busy"],
            "io_wait": 0.1 / n,
        }
        self.snapshots.append(Reading(t, values, levels, use, ["power"]))

    def decide(self, t, bound, workers):
        changes, reason = {}, f"waits little at {workers} workers: nothing to gain"
        if workers != self.workers:
            changes = {"workers": (self.workers, workers)}
            reason = f"waits 30 % at {self.workers} workers, CPUs free: workers {self.workers} -> {workers}"
            self.workers = workers
        number = len(self.decisions) + 1
        guarded = number % 97 == 0
        if guarded:
            changes, reason = {"prefetch": (4, 6)}, "the last change made waiting worse: back to the safe setting"
        self.knobs.append((t, {"workers": workers, "prefetch": 6, "readers": 2}))
        self.decisions.append(decision(number, t, bound, changes, reason, self.random.uniform(0.4, 0.9), guarded))

    def span_some(self, t, i, wait):
        took = self.random.lognormvariate(-7, 0.4) * (8 if i % 90 == 0 else 1)
        self.spans.append(span("read", t, t + took / 4, f"class{i % 9}/{i:06d}.jpg", i, i // 64, i % 90 == 0, 110000))
        self.spans.append(
            span("work", t + took / 4, t + took * 1.25, f"class{i % 9}/{i:06d}.jpg", i, i // 64, i % 90 == 0, 110000)
        )
        self.spans.append(span("batch", t, t + self.random.lognormvariate(-2.4, 0.35), batch=i))
        self.spans.append(span("wait", t, t + self.random.lognormvariate(-9 + 6 * wait, 0.8), batch=i, thread=0))
