"""Slows down the disk for one child process by a control group of version 1, which is removed after the run."""

import os
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup/blkio")


@contextmanager
def disk_limit(path, kind, value):
    """Limit reads from the disk of `path` to `value` bytes ("bps") or reads ("iops") per second.

    Yields a function that puts the calling process under the limit, to be called in a child before exec.
    """
    device, folder = _device_of(path), ROOT / f"drapps-{uuid.uuid4().hex[:12]}"
    try:
        folder.mkdir()
    except OSError as error:
        raise SystemExit(f"{folder}: {error.strerror}: slow disks need root and cgroups of version 1") from None
    try:
        (folder / f"blkio.throttle.read_{kind}_device").write_text(f"{device} {value}")
        yield lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        _remove(folder)


def _device_of(path):
    """Return the disk of a file as "major:minor"; for a partition that of the whole disk."""
    number = os.stat(path).st_dev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    entry = entry.parent if (entry / "partition").exists() else entry
    try:
        return (entry / "dev").read_text().strip()
    except OSError as error:
        raise SystemExit(f"{path} is on no disk whose reads can be limited: {error}") from None


def _remove(folder):
    """Remove the group; retry while its last process is still exiting."""
    for _ in range(50):
        with suppress(OSError):
            return folder.rmdir()
        time.sleep(0.1)
