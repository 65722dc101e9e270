"""The Python stack of another process: it writes it into a file in memory when it gets a signal.

A worker registers faulthandler for the signal, which works even while C code holds the interpreter's lock.
"""

import faulthandler
import os
import signal
import threading
import time

STACK_SIGNAL = signal.SIGRTMIN + 7
WAIT_S = 0.5
STEP_S = 0.01

_one_at_a_time = threading.Lock()


def offer_stack(fd):
    """From now on this process writes its stacks to the end of the file."""
    faulthandler.register(STACK_SIGNAL, file=fd, all_threads=True, chain=False)


def new_stacks():
    """A file for the stacks of several processes: each writes at its end."""
    fd = os.memfd_create("drapps-stacks")
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_APPEND)
    finally:
        os.close(fd)


def stack_of(pid, fd):
    """The stack of a process; empty when it does not answer."""
    with _one_at_a_time:
        os.ftruncate(fd, 0)
        try:
            os.kill(pid, STACK_SIGNAL)
        except ProcessLookupError:
            return ""
        end, size = time.monotonic() + WAIT_S, 0
        while time.monotonic() < end:
            time.sleep(STEP_S)
            size, before = os.fstat(fd).st_size, size
            if size and size == before:
                break
        return os.pread(fd, size, 0).decode(errors="replace")
