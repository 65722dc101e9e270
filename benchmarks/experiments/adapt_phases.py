"""A script of disturbances, and a loader that runs through it in its own process."""

import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

from drapps.bench import environments, peers, process
from benchmarks.experiments.disturb import Quota, burning

CHILD = os.path.join(os.path.dirname(process.__file__), "child.py")
SLICE_S = 0.25  # seconds of a slice of the time series
SETTLE_S = 3.0  # seconds in which a loader may settle after a change


class Condition(NamedTuple):
    """The condition of a phase."""

    name: str
    burn: int = 0  # threads of other programs
    quota: float | None = None  # CPUs
    step: float = 0.0  # seconds for which the consumer holds a batch


class Contender(NamedTuple):
    """A loader with its settings."""

    name: str
    peer: str  # of drapps.bench.peers
    settings: dict
    policy: str = "off"  # for DRAPPS_POLICY


class Place(NamedTuple):
    """The folders that runs need."""

    data: str  # folder of images
    envs: str  # folder of the peers' environments


def run(contender, conditions, seconds, place):
    """Run a contender; return {"phases": [figures of each condition], ...}.  seconds: duration of a phase."""
    quota = Quota() if any(c.quota for c in conditions) else None
    child = _start(contender, place, quota)
    try:
        _expect_first_batch(child)
        phases = [_phase(child, condition, seconds, quota) for condition in conditions]
        out, _ = child.communicate("end\n", timeout=60)
    finally:
        child.kill()
        child.wait()
        if quota:
            quota.close()
    batches = json.loads(out.splitlines()[-1])["batches"]
    return {"phases": [_figures(batches, phase) for phase in phases]}


def _start(contender, place, quota):
    interpreter = environments.python(place.envs, peers.row(contender.peer).environment)
    command = [interpreter, CHILD, contender.peer, "--data", place.data, "--paced", "--settings",
               json.dumps(contender.settings)]  # fmt: skip
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "DRAPPS_POLICY": contender.policy})  # fmt: skip
    if quota:
        quota.add(child.pid)
    return child


def _expect_first_batch(child):
    if not child.stdout.readline():
        raise RuntimeError(f"the loader ended before its first batch: {child.stderr.read()[-2000:]}")


def _phase(child, condition, seconds, quota):
    """Run a phase; return (name, begin, end, CPU seconds of the loader's process and its children)."""
    child.stdin.write(f"step {condition.step}\n")
    child.stdin.flush()
    if quota:
        quota.set(condition.quota)
    with burning(condition.burn, seconds + 10):
        began, cpu = time.monotonic(), process.cpu_seconds(child.pid)
        time.sleep(seconds)
        return condition.name, began, time.monotonic(), process.cpu_seconds(child.pid) - cpu


def _figures(batches, phase):
    """Return the figures of a phase, of all of it and without the 3 seconds in which a loader may settle."""
    name, began, ended, cpu = phase
    inside = [batch for batch in batches if began <= batch[0] < ended]
    settled = [batch for batch in inside if batch[0] >= began + min(SETTLE_S, (ended - began) / 2)]
    return {"condition": name, "seconds": ended - began, "cpu": cpu / (ended - began), **_rates(inside, began, ended),
            "settled": _rates(settled, began + min(SETTLE_S, (ended - began) / 2), ended),
            "series": _series(inside, began, ended)}  # fmt: skip


def _rates(batches, began, ended):
    samples, wait = sum(batch[2] for batch in batches), sum(batch[1] for batch in batches)
    return {"samples_per_s": samples / (ended - began), "wait_share": min(1.0, wait / (ended - began)),
            "longest_wait": max((batch[1] for batch in batches), default=ended - began)}  # fmt: skip


def _series(batches, began, ended):
    """Return samples per second in slices of the phase; a batch counts evenly over the time since the previous one."""
    slices, before = [0.0] * max(1, int((ended - began) / SLICE_S)), began
    for came, _, n in batches:
        _spread(slices, before - began, came - began, n)
        before = came
    return [round(count / SLICE_S, 1) for count in slices]


def _spread(slices, begin, end, amount):
    length = max(end - begin, 1e-9)
    for k in range(max(0, int(begin / SLICE_S)), min(len(slices), int(end / SLICE_S) + 1)):
        overlap = min(end, (k + 1) * SLICE_S) - max(begin, k * SLICE_S)
        slices[k] += amount * max(0.0, overlap) / length


def lost(series, slice_s=SLICE_S):
    """Return the loss of the first 3 seconds (or first half) against the mean rate of the second half.

    In seconds' worth of samples.  Negative: ready batches came in a burst.
    """
    half = len(series) // 2
    level = sum(series[half:]) / (len(series) - half)
    return sum(1 - rate / level for rate in series[: min(half, round(SETTLE_S / slice_s))]) * slice_s if level else 0.0


def settling(series, margin=0.15, slice_s=SLICE_S):
    """Return the seconds until the rate, averaged over a second, stays within the margin of the second half's mean."""
    width = max(1, round(1 / slice_s))
    smooth = [sum(series[k : k + width]) / width for k in range(max(1, len(series) - width + 1))]
    level = sum(smooth[len(smooth) // 2 :]) / len(smooth[len(smooth) // 2 :])
    outside = [k for k, rate in enumerate(smooth[: len(smooth) // 2]) if abs(rate - level) > margin * level]
    return (outside[-1] + 1) * slice_s if outside else 0.0


def can_run(place, peer):
    """Return whether a peer can run here; print why not."""
    missing = environments.missing(place.envs, peers.row(peer).environment)
    if missing:
        print(f"{peer} is left out: {missing}", file=sys.stderr)
    return not missing
