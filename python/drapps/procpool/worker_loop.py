"""WorkerLoop: a worker process claims work of the shmpool until it is dismissed, whatever it makes.

A worker ends when the shmpool says so or its parent is gone.  It ignores SIGINT: the main process decides what Ctrl-C
ends.
"""

import _signal  # signal's functions look up enums, in pages that a new process has to copy first
import os
import time

from drapps import _core
from drapps.build_info import info
from drapps.procpool.worker_diagnostics import Waits, offer_stack

WORK, FINISH, LEAVE = 1, 2, 3  # kinds of a claim
GOOD, BAD, DIED, STUCK = range(4)  # states of a sample
POLL_MS = 1000
LONG_NS = 10_000_000
LEAST_KEPT, MOST_KEPT = 64 << 20, 256 << 20  # bytes of freed memory; less is not worth it
KEPT_PART = 1 / 8  # of the container's memory, for all workers together
MALLOC_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def worker_main(worker, parent, to_close):
    """Run a worker that the zygote forked."""
    _core.end_with_parent()
    if os.getppid() != parent:
        return
    to_close.close()
    live(worker, parent)


def live(worker, parent):
    """Run a worker.  parent: the pid of the process that forked it."""
    _core.name_process("drapps-worker")
    _signal.set_wakeup_fd(-1)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
    offer_stack(worker.setup.stacks)
    worker.begin()
    worker.run(parent)


def keep_memory(workers):
    """Keep freed memory for later samples, unless the environment has settings of malloc."""
    if not any(name in os.environ for name in MALLOC_SETTINGS):
        limits = info()["limits"]
        part = int(limits["memory_bytes"] * KEPT_PART) // (workers * limits["local_world"])
        if part >= LEAST_KEPT:
            _core.keep_memory(min(part, MOST_KEPT))


class WorkerLoop:
    """The loop of a worker.  A subclass gives work(claim), which makes samples, and finish(claim), which makes a batch
    of samples that are all there.

    The object is made before its process is forked, because a forked process copies each page that it writes.  begin()
    does what must be done in the process.
    """

    def __init__(self, setup, number):
        self.setup, self.number, self.shmpool = setup, number, setup.shmpool
        self._keeps = False  # memory
        self._waits = Waits(self.shmpool.waited)

    def begin(self):
        """Prepare the process before its first claim."""
        self.shmpool.attach(self.number, os.getpid())

    def run(self, parent):
        """Work until the worker is dismissed, or the parent is gone."""
        while os.getppid() == parent:
            claim = self.shmpool.claim(self.number, POLL_MS)
            if claim is None:
                continue
            if claim.kind == LEAVE:
                return
            if claim.kind == FINISH:
                self._waits.run(self.finish, claim)
            else:
                began = time.monotonic_ns()
                self._waits.run(self.work, claim)
                if not self._keeps and time.monotonic_ns() - began > LONG_NS:
                    self._keep_memory()

    def done(self, i, n, block, bad):
        """Hand over slots of the claim (dr_shmpool_done).  A batch that this completes is finished at once: out of
        order, the next slots may complete another."""
        complete = self.shmpool.done(self.number, i, n, block, bad)
        if complete is not None:
            self.finish(complete)

    def _keep_memory(self):
        """Keep freed memory.  Done after a long claim: it writes to shared pages, which would delay the first batch."""
        self._keeps = True
        keep_memory(self.setup.workers)

    def new_block(self, nbytes):
        """Return a new block of shared memory, which is this worker's until it is handed over."""
        return self.shmpool.block(self.number, nbytes)
