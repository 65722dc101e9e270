"""Who turns the knobs of worker processes while they work (drapps/shmpool_controller.h), and the thread that does as it proposals.

A controller begins when the processes have worked for a moment, or at once where somebody looks (a trace, a monitor of the
user): short passes cost nothing.
"""

import _thread
import threading
import weakref
from typing import Any, NamedTuple

from drapps import _core
from drapps.build_info import info

BEGIN_S = 0.2
LOOK_MS = 1000
WORKER_BYTES = 256 << 20  # memory that a further worker process should find

# Knobs of worker processes (shmpool_plant.c has the same): who posts looks at the first two, the others take a controller.
POSTED = ("workers", "prefetch")
CONTROLLERED = ("prefetch_bytes", "lane_threshold", "cpu_ceiling", "priority")


class Adapt(NamedTuple):
    """What a user said about it."""

    policy: str | None = None
    monitor: Any = None  # drapps.Monitor; None: the one that the loaders of the process share
    weights: str | None = None
    cpu_limit: float = 0
    trace: Any = None  # a TraceWriter, or None
    name: str = "data set"
    pinned: tuple[str, ...] = ()  # knobs that are the user's
    decided: int = 0  # decisions in earlier passes: numbers go on from there

    @property
    def at_once(self):
        """Somebody looks."""
        return self.monitor is not None or self.trace is not None


def most_workers():
    """Processes that a controller may come to: by CPUs, and by memory."""
    limits = info()["limits"]
    return max(1, min(2 * limits["workers"], limits["memory_bytes"] // (WORKER_BYTES * limits["local_world"])))


class Controller:
    """The controller of a pool.  It does not hold the pool."""

    def __init__(self, pool, shmpool, adapt, *, workers, prefetch, memory_limit):
        monitor = getattr(adapt.monitor, "_core", adapt.monitor)
        self._core = _core.adapt_shmpool(shmpool, policy=adapt.policy, weights=adapt.weights, name=adapt.name,
                                      monitor=monitor, trace=adapt.trace, cpu_limit=float(adapt.cpu_limit or 0),
                                      memory_limit=memory_limit, pinned=adapt.pinned, workers=workers,
                                      prefetch=prefetch, most_workers=max(workers, most_workers()), decided=adapt.decided)  # fmt: skip
        self._follows = threading.Lock()  # held by the thread
        self._follows.acquire()
        # Thread.start() would wait until it runs: milliseconds of the trainer where workers have all CPUs.
        self._thread = _thread.start_new_thread(_follow, (self._core, weakref.ref(pool), self._follows))

    def get(self, knob):
        """How it stands."""
        return self._core.get(knob)

    def set(self, knob, value):
        """The user's, from now on."""
        self._core.set(knob, value)

    def watch(self, pid):
        """A process that works for the pool."""
        self._core.watch(pid)

    def decisions(self, after=0):
        """As tuples, see drapps.sched.Decision.of."""
        return self._core.decisions(after)

    def end(self):
        """Nothing is turned any more, and the thread is gone."""
        self._core.stop()
        if self._thread != threading.get_ident():
            with self._follows:
                pass


def _follow(core, pool_ref, follows):
    """The life of the thread."""
    _core.name_process("drapps-control")  # in which it is a thread's name
    try:
        _do_as_proposed(core, pool_ref)
    finally:
        follows.release()


def _do_as_proposed(core, pool_ref):
    """Until the controller is stopped or the pool is gone."""
    number = 0
    while True:
        try:
            proposed = core.wait_proposal(number, LOOK_MS)
        except StopIteration:
            return
        pool = pool_ref()
        if pool is None:
            return
        if proposed is not None:
            number = proposed
            pool.follow(core)
        del pool
