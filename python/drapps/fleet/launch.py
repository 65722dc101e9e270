"""Processes of multiprocessing that are forked one right after the other.

After a fork, the parent copies each page that it writes, at some microseconds each, and after the next fork the same
pages again.  Process.start writes 150 pages around its fork.  So here a start has two steps: all that can be made
before (launch), and the fork with what must follow it at once.
"""

import multiprocessing.context
import os
import time
from multiprocessing import popen_fork, process as processes


def launch(process, pause_s=0):
    """What start() begins the process with; close(): in a process that has no part in it.

    pause_s: a process that is forked waits so long before it does anything, to leave the CPUs to others.

    The process does not get into multiprocessing's list: each fork of the trainer would end or join it at its own end.
    """
    return Split(process, pause_s) if _can_be_split(process) else Whole(process)


def _can_be_split(process):
    """Only what is known here: later versions of Python have an atexit for forked processes; daemons get an error."""
    plain = process._Popen is multiprocessing.context.ForkProcess._Popen and not hasattr(popen_fork, "atexit")
    return plain and not processes.current_process().daemon


class Whole:
    """By Process.start."""

    def __init__(self, process):
        self._process, self.pid = process, None

    def start(self):
        """In its own way."""
        self._process.start()
        self.pid = self._process.pid
        processes._children.discard(self._process)

    def close(self):
        """There is nothing yet."""


class Split(popen_fork.Popen):
    """Process.start in two steps."""

    _fds = ()  # to be closed
    _owner = None

    def __init__(self, process, pause_s):
        self._pause_s = pause_s
        super().__init__(process)

    def _launch(self, process):
        """What the constructor of Popen calls."""
        self._process, self._owner = process, os.getpid()
        self._fds = [*os.pipe()]
        self._fds += os.pipe()
        self.sentinel, self._child_w, self._child_r, self._parent_w = self._fds

    def start(self):
        """Forks."""
        self.pid = os.fork()
        if self.pid == 0:
            self._live()
        self._fds = (self.sentinel, self._parent_w)
        os.close(self._child_w)
        os.close(self._child_r)
        process, self._process = self._process, None
        process._popen, process._sentinel = self, self.sentinel
        del process._target, process._args, process._kwargs  # which may hold the process

    def _live(self):
        """The life of the child."""
        code, self._fds = 1, ()
        try:
            os.close(self.sentinel)
            os.close(self._parent_w)
            time.sleep(self._pause_s)
            code = self._process._bootstrap(parent_sentinel=self._child_r)
        finally:
            os._exit(code)

    def close(self):
        """Its descriptors."""
        fds, self._fds = self._fds, ()
        for fd in fds:
            os.close(fd)

    def __del__(self):
        if os.getpid() == self._owner:  # a fork of the trainer may have closed them, and have others by these numbers
            self.close()
