"""A folder for what a planner tries out, which is gone when the planner is, whatever ended it.

The planner holds a lock on a file in its folder.  The kernel gives the lock back when the process ends, also by kill
-9; so a folder whose lock is free was left behind, and the next planner that works in the same place removes it.
"""

import errno
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress

from drapps import _core
from drapps.printable import printable
from drapps.printing import bytes_text

PREFIX = ".drapps-plan-"
LOCK = "lock"
KEEP_FREE = 256 << 20  # bytes of the disk that are left alone
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


class Workspace:
    """The folder; `removed`: how many left-behind ones were deleted."""

    def __init__(self, parent=None):
        self.parent = os.path.abspath(os.fsdecode(parent or tempfile.gettempdir()))
        try:
            os.makedirs(self.parent, exist_ok=True)
            self.removed = remove_leftovers(self.parent)
            self.path = tempfile.mkdtemp(prefix=PREFIX, dir=self.parent)
        except OSError as error:
            raise _core.IOError(f"plan: cannot work in {printable(self.parent)}: {error.strerror}") from None
        self._lock = os.open(os.path.join(self.path, LOCK), os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def folder(self, name):
        """A new path below it."""
        return os.path.join(self.path, name)

    def free_bytes(self):
        """Bytes that may be written."""
        return max(0, shutil.disk_usage(self.path).free - KEEP_FREE)

    def check_room(self, needed, what):
        """Raises if `needed` bytes do not fit."""
        free = self.free_bytes()
        if needed > free:
            raise _core.LimitError(
                f"{what} needs {bytes_text(needed)} in {self.parent}, there are {bytes_text(free)} "
                "(256 MB are left alone); name another folder by --work"
            )

    def close(self):
        """Deletes the folder."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def remove_leftovers(parent):
    """Deletes the folders of planners that are no more; how many there were."""
    removed = 0
    for entry in os.scandir(parent):
        if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False) and _is_left(entry.path):
            shutil.rmtree(entry.path, ignore_errors=True)
            removed += not os.path.exists(entry.path)
    return removed


def _is_left(folder):
    """Whether nobody holds its lock.  One without a lock file is just being made, or being deleted, unless it is
    old.
    """
    try:
        lock = os.open(os.path.join(folder, LOCK), os.O_RDWR)
    except FileNotFoundError:
        with suppress(OSError):
            return os.stat(folder).st_mtime < _now(folder) - 60
        return False
    except OSError:  # another user's
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    finally:
        os.close(lock)
    return True


def _now(folder):
    """The clock of the file system that the folder is on."""
    with tempfile.TemporaryFile(dir=os.path.dirname(folder)) as file:
        return os.fstat(file.fileno()).st_mtime


def is_in_memory(path):
    """Whether a path lies on a file system that is memory."""
    best = ("", "")
    with suppress(OSError, ValueError), open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            _, where, kind, *_ = line.split()
            if (path == where or path.startswith(where.rstrip("/") + "/")) and len(where) >= len(best[0]):
                best = (where, kind)
    return best[1] in MEMORY_FILE_SYSTEMS
