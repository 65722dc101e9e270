"""Start the zygote and the first worker by two forks with nothing in between.

After a fork, the parent copies each page that it writes, at some microseconds each, and after the next fork the same
pages again.  Process.start writes 150 pages around its fork.  So here a start has three steps: all that can be made
before (launch), the fork, and what must follow it (began, or live in the child).  Two processes can be forked with
nothing in between (start_both).

In this way the main process forks the first worker of a pool itself (First), which is at work while the zygote starts.
The zygote adopts that worker: it watches it, replaces it when it dies and ends it, as it does with its own children.
Only the main process can reap it, and so knows its exit code.
"""

import contextlib
import functools
import gc
import multiprocessing.context
import os
import signal
from collections.abc import Sequence
from multiprocessing import connection, popen_fork, process as processes

from drapps import _core
from drapps.procpool.worker_loop import live
from drapps.procpool.zygote import AdoptedWorker

FIRST, SECOND = 1, 2  # roles of a process after fork_both


def launch(process):
    """Return an object whose start() starts the process; close() is for a process that has no part in it.

    The process does not get into multiprocessing's list: each fork of the main process would end or join it when it
    ends itself.
    """
    return Split(process) if _can_be_split(process) else Whole(process)


def start_both(first, second, pause_s):
    """Start two processes that launch() returned.  The second inherits first.fd, a pidfd of the first.

    pause_s: the second waits so long, where it can, to leave the CPUs to the first.
    """
    if not (isinstance(first, Split) and isinstance(second, Split)):
        first.start()
        first.fd = os.pidfd_open(first.pid)
        second.start()
        return
    forked = _core.fork_both(int(pause_s * 1e6))
    first.pid, second.pid, first.fd = forked.first_pid, forked.second_pid, forked.first_fd
    if forked.role == FIRST:
        first.live()
    if forked.role == SECOND:
        second.live()
    first.began()
    second.began()


def has_ended(process):
    """Return whether a process has ended, also where multiprocessing cannot know: its exit code is lost where SIGCHLD
    is ignored, or where its handler waits for any child."""
    return process.exitcode is not None or bool(connection.wait([process.sentinel], 0))


def let_go(process):
    """Close a process that has ended."""
    with contextlib.suppress(ValueError):  # its exit code is lost: its descriptors are closed with the last reference
        process.close()


def _can_be_split(process):
    """Return whether Split knows this kind.  Later versions of Python have an atexit for forked processes."""
    plain = process._Popen is multiprocessing.context.ForkProcess._Popen and not hasattr(popen_fork, "atexit")
    return plain and not processes.current_process().daemon


class Whole:
    """A process that is started by Process.start."""

    pid = fd = None

    def __init__(self, process):
        self._process = process

    def start(self):
        """Start the process."""
        self._process.start()
        self.pid = self._process.pid
        processes._children.discard(self._process)

    def close(self):
        """Nothing is open yet."""


class Split(popen_fork.Popen):
    """Process.start in three steps."""

    _fds: Sequence[int] = ()  # to be closed

    def _launch(self, process):
        """Prepare the start.  The constructor of Popen calls this."""
        self.pid = self.fd = None
        self._process, self._owner = process, os.getpid()
        self._fds = [*os.pipe()]
        self._fds += os.pipe()
        self.sentinel, self._child_w, self._child_r, self._parent_w = self._fds

    def start(self):
        """Fork, and do both sides."""
        self.pid = os.fork()
        if self.pid == 0:
            self.live()
        self.began()

    def began(self):
        """Do what follows the fork in the parent."""
        self._fds = (self.sentinel, self._parent_w)
        os.close(self._child_w)
        os.close(self._child_r)
        process, self._process = self._process, None
        process._popen, process._sentinel = self, self.sentinel
        del process._target, process._args, process._kwargs  # which may hold the process

    def live(self):
        """Run the child.  Does not return."""
        code, self._fds = 1, ()
        try:
            os.close(self.sentinel)
            os.close(self._parent_w)
            code = self._process._bootstrap(parent_sentinel=self._child_r)
        finally:
            os._exit(code)

    def close(self):
        """Close the descriptors."""
        fds, self._fds = self._fds, ()
        for fd in fds:
            os.close(fd)

    def __del__(self):
        if os.getpid() == self._owner:  # a fork may have closed them, and use these numbers for others
            self.close()


# --- the first worker ---


@functools.cache
def can_adopt():
    """Return whether the kernel has pidfds, by which a process is watched that is no child."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


class FirstWorker:
    """The first worker, as the main process sees it.  forget: called in the worker, to close what is not its own."""

    def __init__(self, setup, context, forget):
        self._process = context.Process(target=_main, daemon=True, name="drapps-worker-0",
                                        args=(setup.new_worker(0), os.getpid(), forget))  # fmt: skip
        self._launch = launch(self._process)

    def start_with(self, zygote, pause_s):
        """Fork it and then the zygote, which leaves the CPUs to it for a moment."""
        try:
            start_both(self._launch, zygote, pause_s)
        except BaseException:
            self.end()
            raise

    def hand_over(self):
        """Return what the zygote knows of it.  Called in the zygote, which inherits the descriptor."""
        self._launch.close()
        return AdoptedWorker(self._launch.pid, self._launch.fd)

    def drop(self):
        """Close the descriptor."""
        fd, self._launch.fd = self._launch.fd, None
        if fd is not None:
            os.close(fd)

    def exitcode(self):
        """Return the exit code of the dead process."""
        self._process.join()
        return self._process.exitcode

    def end(self):
        """Kill it, and wait until it is gone."""
        if self._launch.pid is None:  # it could not be forked
            return
        if self._launch.fd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._launch.fd, signal.SIGKILL)
        elif not has_ended(self._process):
            self._process.kill()
        self.drop()
        self._process.join()
        let_go(self._process)


def _main(worker, parent, forget):
    """Run the worker.  The kernel could end it with the thread that forked it, but not with the main process: it checks
    for its parent between claims, and the zygote ends it when a claim takes longer."""
    gc.freeze()
    forget()
    live(worker, parent)
