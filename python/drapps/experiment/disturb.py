"""What disturbs a run: foreign load on a CPU, a CPU quota, a consumer that changes its pace."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

BURN = Path(__file__).parents[1] / "drapps-burn"
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@contextmanager
def burning(threads, seconds):
    """Foreign threads that take a CPU each, until the block ends."""
    if not threads:
        yield
        return
    burn = subprocess.Popen([BURN, "cpu", "--seconds", str(seconds), "--threads", str(threads)],
                            stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        yield
    finally:
        burn.kill()
        burn.wait()


class Quota:
    """A control group of our own with a CPU quota, of either version.  Needs the rights to make one."""

    def __init__(self):
        self._v1 = (V1 / "cpu.cfs_quota_us").exists()
        self._folder = (V1 if self._v1 else V2) / f"drapps-experiment-{os.getpid()}"
        try:
            self._folder.mkdir()
        except OSError as error:
            raise SystemExit(f"{self._folder}: {error.strerror}: quotas need a writable control group") from None

    def add(self, pid):
        """Puts a process and all it will start into the group."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def set(self, cpus):
        """cpus None: no limit."""
        quota = None if cpus is None else round(cpus * PERIOD_US)
        if self._v1:
            (self._folder / "cpu.cfs_quota_us").write_text(str(quota or -1))
        else:
            (self._folder / "cpu.max").write_text(f"{quota or 'max'} {PERIOD_US}")

    def close(self):
        """Removes the group; what still runs in it goes back first."""
        for pid in (self._folder / "cgroup.procs").read_text().split():
            try:
                (self._folder.parent / "cgroup.procs").write_text(pid)
            except OSError as error:  # it has just ended
                print(f"process {pid} stays in {self._folder}: {error}", file=sys.stderr)
        for _ in range(50):
            try:
                return self._folder.rmdir()
            except OSError:  # the last process is not quite gone
                time.sleep(0.1)
