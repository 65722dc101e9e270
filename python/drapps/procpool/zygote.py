"""The zygote: the process that workers are forked from.

It has the data set and no threads, so that a worker can be forked at any time.  It starts workers, adopts the one that
the main process started (launch.py), notices at once when a worker dies, returns its samples to the shmpool and starts
a replacement.  It ends, and its workers with it, when the main process says so, closes the connection, or is gone.

    main process to zygote: ("resize", n)  ("renice", nice)  ("kill", worker)  ("close",)
    zygote to main process: ("ready",), first of all  ("died", Death)  ("failed", text)
"""

import contextlib
import gc
import multiprocessing
import os
import signal
import time
import traceback
from collections import namedtuple
from multiprocessing import connection

from drapps import _core
from drapps.procpool.worker_loop import worker_main

CHECK_PARENT_S = 1.0
LEAVE_S = 0.5  # for workers to leave by themselves
MAX_DEATHS = 16  # without a finished batch in between

Death = namedtuple("Death", "worker pid exitcode redone replaced")
# exitcode: None for an adopted worker.  redone: the Slots that other workers make again.  replaced: whether it was.


def zygote_main(sent, conn, adopted=None, parent=None):
    """Run the zygote.

    sent: a Setup, or a ReceivedSetup.  conn: the connection to the main process.  adopted: worker 0, when the main
    process has forked it.  parent: the pid of the main process when it forked this process.
    """
    _core.name_process("drapps-zygote")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, exit codes are lost
    try:
        conn.send(("ready",))
        Zygote(sent.opened(), conn, adopted, parent or os.getppid()).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception:
        conn.send(("failed", traceback.format_exc()))


class Child:
    """A worker process."""

    def __init__(self, process):
        self.process, self.pid = process, process.pid
        try:
            self.fd = os.pidfd_open(process.pid)
        except OSError:  # an old kernel
            self.fd = os.dup(process.sentinel)

    def kill(self):
        """Kill the process."""
        os.kill(self.pid, signal.SIGKILL)

    def reap(self):
        """Return the exit code of the dead process, and free what belongs to it."""
        self.process.join()
        exitcode = self.process.exitcode
        self.process.close()
        os.close(self.fd)
        return exitcode


class AdoptedWorker:
    """A worker that is a child of the main process.  fd: a pidfd, valid even when the main process has reaped it."""

    def __init__(self, pid, fd):
        self.pid, self.fd = pid, fd

    def kill(self):
        """Kill the process."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, signal.SIGKILL)

    def reap(self):
        """Close the pidfd.  Returns None: the main process has the exit code."""
        os.close(self.fd)


class Zygote:
    """The workers of a pool, as the process that forks them sees them."""

    def __init__(self, setup, conn, adopted, parent):
        self._setup, self._shmpool, self._conn = setup, setup.shmpool, conn
        self._parent = parent  # the main process, or the fork server, which ends with it
        self._context = multiprocessing.get_context("fork")
        self._children = {} if adopted is None else {0: adopted}  # by number
        self._wanted, self._nice = setup.workers, 0  # number of workers, and their nice value
        self._killed = set()  # workers at stuck samples: their samples are given up
        self._leaving = set()  # workers that were asked to leave
        self._deaths, self._batches = 0, 0

    def run(self):
        """Run until the main process does not need the zygote any more."""
        gc.freeze()  # the workers' garbage collectors skip what exists now, so that its pages are not copied
        try:
            self._fill()
            while os.getppid() == self._parent and self._listen():
                self._wait_for_deaths(CHECK_PARENT_S)
        finally:
            self._end()

    def _fill(self):
        for number in range(self._wanted):
            if number not in self._children:
                self._start(number)

    def _start(self, number):
        process = self._context.Process(target=worker_main, daemon=True, name=f"drapps-worker-{number}",
                                        args=(self._setup.new_worker(number), os.getpid(), self._conn))  # fmt: skip
        process.start()
        self._children[number] = Child(process)
        if self._nice:
            self._set_nice(process.pid)

    # --- messages of the main process ---

    def _listen(self):
        """Handle all messages; return False after "close"."""
        while self._conn.poll():
            what, *arguments = self._conn.recv()
            if what == "close":
                return False
            getattr(self, f"_{what}")(*arguments)
        return True

    def _resize(self, n):
        self._wanted = n
        for number in self._children:
            if number >= n:
                self._leaving.add(number)
                self._shmpool.dismiss(number)
        self._fill()

    def _renice(self, nice):
        """Set the nice value of all workers.  One for which the kernel refuses it is replaced by a
        new one that has it."""
        self._nice = nice
        for number, child in self._children.items():
            if not self._set_nice(child.pid):
                self._leaving.add(number)
                self._shmpool.dismiss(number)

    def _set_nice(self, pid):
        try:
            os.setpriority(os.PRIO_PROCESS, pid, self._nice)
        except ProcessLookupError:
            pass
        except PermissionError:
            return False
        return True

    def _kill(self, number):
        child = self._children.get(number)
        if child is not None:
            self._killed.add(number)
            child.kill()

    # --- deaths ---

    def _wait_for_deaths(self, timeout):
        numbers = {child.fd: number for number, child in self._children.items()}
        for fd in connection.wait([self._conn, *numbers], timeout):
            if fd is not self._conn:
                self._replace_dead(numbers[fd])

    def _replace_dead(self, number):
        child = self._children.pop(number)
        pid, exitcode = child.pid, child.reap()
        if number in self._killed:
            self._killed.discard(number)
            self._shmpool.give_up(number)
        redone = self._shmpool.reap(number)
        left = number in self._leaving and exitcode in (0, None)  # None: it was adopted
        self._leaving.discard(number)
        if left:
            self._fill()  # it may be wanted again by now
            return
        if self._too_many_deaths():
            self._conn.send(("failed", f"{self._deaths} worker processes died and no batch was finished in between; "
                                          f"the last: {describe(number, pid, exitcode)}"))  # fmt: skip
            return
        self._conn.send(("died", Death(number, pid, exitcode, redone, number < self._wanted)))
        if number < self._wanted:
            self._start(number)

    def _too_many_deaths(self):
        batches = self._shmpool.stats()["batches"]
        self._deaths = self._deaths + 1 if batches == self._batches else 1
        self._batches = batches
        return self._deaths >= MAX_DEATHS

    def _end(self):
        """End all workers: idle ones leave by themselves, the others make samples that nobody waits
        for, and are killed."""
        for number in self._children:
            self._shmpool.dismiss(number)
        end = time.monotonic() + LEAVE_S
        waiting = {child.fd for child in self._children.values()}
        while waiting and (left := end - time.monotonic()) > 0:
            waiting.difference_update(connection.wait(list(waiting), left))
        for child in self._children.values():
            if child.fd in waiting:
                child.kill()
            child.reap()
        self._children.clear()


def out_of_memory_kills():
    """How many processes of this container were killed for lack of memory; 0 where the kernel does not tell."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(path, encoding="ascii") as file:
                counts = dict(line.split() for line in file if len(line.split()) == 2)
        except OSError:
            continue
        return int(counts.get("oom_kill", 0))
    return 0


def describe(number, pid, exitcode):
    """Describe a dead worker in words."""
    if exitcode is None:
        cause = "ended"
    elif exitcode < 0:
        try:
            cause = f"was killed by {signal.Signals(-exitcode).name}"
            if exitcode == -signal.SIGKILL and out_of_memory_kills():
                cause += " (the kernel has ended processes here for lack of memory)"
        except ValueError:
            cause = f"was killed by signal {-exitcode}"
    else:
        cause = f"exited with code {exitcode}"
    return f"worker {number} (pid {pid}) {cause}"
