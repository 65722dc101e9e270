"""Disturbances of a run: foreign load, control groups with a limit, a consumer that changes its pace."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import drapps

BURN = Path(drapps.__file__).parent / "drapps-burn"
GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@contextmanager
def beside(run):
    """Call run(end) in a thread inside the with block; `end`, an event, is set at the end of the block."""
    end = threading.Event()
    thread = threading.Thread(target=run, args=(end,))
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@contextmanager
def load(kind, seconds, *arguments, cpus=None):
    """Run `drapps burn` inside the with block.  cpus: the CPUs it may use."""
    enter = cpus and (lambda: os.sched_setaffinity(0, cpus))
    burn = subprocess.Popen([BURN, kind, "--seconds", str(seconds), *map(str, arguments)], stdout=subprocess.DEVNULL,
                            preexec_fn=enter)  # fmt: skip
    try:
        yield
    finally:
        burn.kill()
        burn.wait()


def moved(kind, seconds, *arguments):
    """Return the bytes per second that `drapps burn` moves."""
    command = [BURN, kind, "--seconds", str(seconds), *map(str, arguments)]
    done = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return done["bytes"] / done["seconds"]


@contextmanager
def burning(threads, seconds):
    """Run foreign threads that each use a CPU inside the with block."""
    if not threads:
        yield
        return
    with load("cpu", seconds, "--threads", threads):
        yield


class Group:
    """A new control group, of version 1 or 2.  Needs the rights to make one."""

    def __init__(self, controller, v1_file):
        self._v1 = (GROUPS / controller / v1_file).exists()
        self._folder = (GROUPS / controller if self._v1 else GROUPS) / f"drapps-experiment-{os.getpid()}"
        try:
            self._folder.mkdir()
        except OSError as error:
            raise SystemExit(f"{self._folder}: {error.strerror}: limits need a writable control group") from None

    def add(self, pid):
        """Put a process and its future children into the group."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def close(self):
        """Remove the group; processes still in it are moved back first."""
        for pid in (self._folder / "cgroup.procs").read_text().split():
            try:
                (self._folder.parent / "cgroup.procs").write_text(pid)
            except OSError as error:  # it has just ended
                print(f"process {pid} stays in {self._folder}: {error}", file=sys.stderr)
        for _ in range(50):
            try:
                return self._folder.rmdir()
            except OSError:  # the last process is still exiting
                time.sleep(0.1)


class Quota(Group):
    """A group with a CPU quota."""

    def __init__(self):
        super().__init__("cpu", "cpu.cfs_quota_us")

    def set(self, cpus):
        """cpus None: no limit."""
        quota = None if cpus is None else round(cpus * PERIOD_US)
        if self._v1:
            (self._folder / "cpu.cfs_quota_us").write_text(str(quota or -1))
        else:
            (self._folder / "cpu.max").write_text(f"{quota or 'max'} {PERIOD_US}")


class MemoryLimit(Group):
    """A group with a limit of memory, in bytes."""

    def __init__(self, limit):
        super().__init__("memory", "memory.limit_in_bytes")
        try:
            (self._folder / ("memory.limit_in_bytes" if self._v1 else "memory.max")).write_text(str(limit))
        except OSError as error:  # version 2 without the controller
            self.close()
            raise SystemExit(f"{self._folder}: {error.strerror}: it takes no limit of memory") from None
