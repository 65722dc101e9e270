"""EngineRun: a real loader with given settings and a consumer whose steps have a given length, measured."""

import os
import random
import statistics
import subprocess
import time
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import drapps

READ_DELAY = "DRAPPS_READ_DELAY_US"


class Setting(NamedTuple):
    """Settings of a loader, and the conditions around it."""

    workers: int
    readers: int = 0
    prefetch: int = 2
    step: float = 0.0  # seconds for a batch
    step_cpu: float = 0.0  # the part of it that is spent on a CPU
    tenants: int = 0  # threads of others
    read_delay: float = 0.0  # seconds, in each read
    cpu_limit: float = 0.0  # 0: none


@contextmanager
def _delayed_reads(seconds):
    """Data sets that are opened inside the with block read with a delay."""
    before = os.environ.pop(READ_DELAY, None)
    if seconds:
        os.environ[READ_DELAY] = str(round(seconds * 1e6))
    try:
        yield
    finally:
        os.environ.pop(READ_DELAY, None)
        if before is not None:
            os.environ[READ_DELAY] = before


class Tenants:
    """Other programs that use CPUs, while they are wanted."""

    def __init__(self):
        self._burn = None

    def set(self, threads):
        """Run so many threads."""
        self.stop()
        if threads:
            program = Path(drapps.__file__).parent / "drapps-burn"
            command = [program, "cpu", "--seconds", "600", "--threads", str(threads)]
            self._burn = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def stop(self):
        """End them."""
        if self._burn:
            self._burn.kill()
            self._burn.wait()
        self._burn = None


def sleep_error(n=40, seconds=0.002):
    """Return by how much a sleep is longer than asked for."""
    errors = []
    for _ in range(n):
        begun = time.perf_counter()
        time.sleep(seconds)
        errors.append(time.perf_counter() - begun - seconds)
    return max(statistics.median(errors), 0.0)


def pass_step(setting):
    """A training step: sleep for the part on an accelerator, compute for the part on a CPU."""
    if setting.step > setting.step_cpu:
        time.sleep(setting.step - setting.step_cpu)
    if setting.step_cpu > 0:
        end = time.thread_time() + setting.step_cpu
        while time.thread_time() < end:
            pass


class EngineRun:
    """A loader over samples in a random order without end; no policy turns its knobs."""

    def __init__(self, make, n, batch_size, setting, seed=0):
        """make(): the pipeline.  n: use its first n samples."""
        self._undo = ExitStack()
        self.setting, self.batch_size = setting, batch_size
        order = list(range(n))
        random.Random(seed).shuffle(order)
        self._ids = cycle(order)
        with _delayed_reads(setting.read_delay):
            pipe = make()
        limit = {"cpu_limit": setting.cpu_limit} if setting.cpu_limit else {}
        self.loader = self._undo.enter_context(
            pipe.loader(batch_size, workers=setting.workers, prefetch=setting.prefetch, pushed_order=True,
                        policy="off", output="numpy", **limit)
        )  # fmt: skip
        self.loader.set("readers", setting.readers)
        self._tenants = Tenants()
        self._undo.callback(self._tenants.stop)
        self._tenants.set(setting.tenants)
        self._batches = iter(self.loader)
        for _ in range(setting.prefetch + 2):
            self._push()

    def _push(self):
        self.loader.push(list(islice(self._ids, self.batch_size)))

    def change(self, setting):
        """Turn to other settings while it runs."""
        for name in ("workers", "readers", "prefetch"):
            if getattr(setting, name) != getattr(self.setting, name):
                self.loader.set(name, getattr(setting, name))
        for _ in range(setting.prefetch - self.setting.prefetch):
            self._push()
        if setting.tenants != self.setting.tenants:
            self._tenants.set(setting.tenants)
        self.setting = setting

    def consume(self, seconds):
        """Consume for some seconds; return (time, samples so far) at each batch, from 0 on."""
        begun, samples = time.perf_counter(), 0
        marks = [(0.0, 0)]
        while marks[-1][0] < seconds:
            next(self._batches)
            self._push()
            pass_step(self.setting)
            samples += self.batch_size
            marks.append((time.perf_counter() - begun, samples))
        return marks

    def close(self):
        """Stop the loader and the tenants."""
        self._undo.close()

    def __enter__(self):
        """Return the run."""
        return self

    def __exit__(self, *error: Any):
        """Close it."""
        self.close()


def rate_of(marks):
    """Samples a second."""
    return marks[-1][1] / marks[-1][0] if marks[-1][0] else 0.0
