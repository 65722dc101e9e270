"""The life of a worker process, whatever it makes: it claims work of the crew until it is told to leave."""

import os
import signal

from drapps import _core
from drapps.fleet.stacks import offer_stack

WORK, FINISH, LEAVE = 1, 2, 3  # kinds of a claim
GOOD, BAD, DIED, STUCK = range(4)  # states of a sample
LOOK_MS = 1000
KEEP_BYTES = 128 << 20  # of freed memory
SAID = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def worker_main(setup, number, parent, to_close):
    """The life of a worker that the zygote forked."""
    _core.end_with_parent()
    if os.getppid() != parent:
        return
    to_close.close()
    live(setup, number, parent)


def live(setup, number, parent):
    """The life of a worker process; parent: the process that forked it."""
    _core.name_process("drapps-worker")
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    offer_stack(setup.stacks)
    keep_memory()
    setup.new_worker(number).run(parent)


def keep_memory():
    """Samples are made of the memory that earlier ones have freed, unless the user has said something about that."""
    if not any(name in os.environ for name in SAID):
        _core.keep_memory(KEEP_BYTES)


class Claimer:
    """What all workers do alike; a subclass gives work (samples of a claim) and finish (a batch whose samples are
    there)."""

    def __init__(self, setup, number):
        self.setup, self.number, self.crew = setup, number, setup.crew
        self.crew.enlist(number, os.getpid())

    def run(self, parent):
        """Works until the crew says to leave, or the parent is gone."""
        while os.getppid() == parent:
            claim = self.crew.claim(self.number, LOOK_MS)
            if claim is None:
                continue
            if claim.kind == LEAVE:
                return
            if claim.kind == FINISH:
                self.finish(claim)
            else:
                self.work(claim)

    def new_block(self, nbytes):
        """A block of shared memory that is this worker's until it is handed over."""
        return self.crew.block(self.number, nbytes)
