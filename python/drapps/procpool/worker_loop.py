"""The life of a worker process, whatever it makes: it claims work of the shmpool until it is told to leave."""

import _signal  # signal's functions look up enums, in pages that a new process has to copy first
import os
import time

from drapps import _core
from drapps.build_info import info
from drapps.procpool.worker_diagnostics import Waits, offer_stack

WORK, FINISH, LEAVE = 1, 2, 3  # kinds of a claim
GOOD, BAD, DIED, STUCK = range(4)  # states of a sample
LOOK_MS = 1000
LONG_NS = 10_000_000
LEAST_KEPT, MOST_KEPT = 64 << 20, 256 << 20  # bytes of freed memory; less is not worth it
KEPT_PART = 1 / 8  # of the container's memory, for all workers together
SAID = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def worker_main(worker, parent, to_close):
    """The life of a worker that the zygote forked."""
    _core.end_with_parent()
    if os.getppid() != parent:
        return
    to_close.close()
    live(worker, parent)


def live(worker, parent):
    """The life of a worker process; parent: the process that forked it."""
    _core.name_process("drapps-worker")
    _signal.set_wakeup_fd(-1)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
    offer_stack(worker.setup.stacks)
    worker.begin()
    worker.run(parent)


def keep_memory(workers):
    """Samples are made of the memory that earlier ones have freed, unless the user has said something about that."""
    if not any(name in os.environ for name in SAID):
        limits = info()["limits"]
        part = int(limits["memory_bytes"] * KEPT_PART) // (workers * limits["local_world"])
        if part >= LEAST_KEPT:
            _core.keep_memory(min(part, MOST_KEPT))


class Claimer:
    """What all workers do alike; a subclass gives work (samples of a claim) and finish (a batch whose samples are
    there).

    One is made before its process is forked, which copies each page that it writes: what can be made for it is made
    here, and begin() does what must be done there.
    """

    def __init__(self, setup, number):
        self.setup, self.number, self.shmpool = setup, number, setup.shmpool
        self._keeps = False  # memory
        self._waits = Waits(self.shmpool.waited)

    def begin(self):
        """In its process, before the first claim."""
        self.shmpool.attach(self.number, os.getpid())

    def run(self, parent):
        """Works until the shmpool says to leave, or the parent is gone."""
        while os.getppid() == parent:
            claim = self.shmpool.claim(self.number, LOOK_MS)
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
        """Some slots of the claim are done; see dr_shmpool_done.  A batch that this completes is finished at once: out of
        order, the next slots may complete another."""
        complete = self.shmpool.done(self.number, i, n, block, bad)
        if complete is not None:
            self.finish(complete)

    def _keep_memory(self):
        """Not before something took long: it writes to pages that all processes share, while a first batch is due."""
        self._keeps = True
        keep_memory(self.setup.workers)

    def new_block(self, nbytes):
        """A block of shared memory that is this worker's until it is handed over."""
        return self.shmpool.block(self.number, nbytes)
