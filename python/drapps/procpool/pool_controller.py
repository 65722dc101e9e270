"""Controller: turns the knobs of worker processes while they work (drapps/shmpool_controller.h).

The C controller decides in the thread of a monitor.  Workers and priority are changed by a thread here, because that
takes messages to the zygote.  A controller starts when the processes have worked for BEGIN_S, so that short passes pay
nothing for it; at once where there is a trace or a monitor of the user.
"""

import _thread
import threading
import weakref
from typing import Any, NamedTuple

from drapps import _core
from drapps.build_info import info

BEGIN_S = 0.2
POLL_MS = 1000
WORKER_BYTES = 256 << 20  # memory that a further worker process should find

# Knobs of worker processes (as in shmpool_plant.c).  Front ends read the first two; the others need a controller.
POSTING_KNOBS = ("workers", "prefetch")
CONTROLLER_KNOBS = ("prefetch_bytes", "lane_threshold", "cpu_ceiling", "priority")


class Adapt(NamedTuple):
    """The settings of a controller."""

    policy: str | None = None
    monitor: Any = None  # drapps.Monitor; None: the one that the loaders of the process share
    weights: str | None = None
    cpu_limit: float = 0
    trace: Any = None  # a TraceWriter, or None
    name: str = "data set"
    pinned: tuple[str, ...] = ()  # knobs that the user has set
    decided: int = 0  # decisions in earlier passes: numbers continue from there

    @property
    def at_once(self):
        """Whether the controller starts with the processes."""
        return self.monitor is not None or self.trace is not None


def most_workers():
    """Return the most processes that a controller may use, by CPUs and by memory."""
    limits = info()["limits"]
    return max(1, min(2 * limits["workers"], limits["memory_bytes"] // (WORKER_BYTES * limits["local_world"])))


class Controller:
    """The controller of a pool.  It holds no reference to the pool."""

    def __init__(self, pool, shmpool, adapt, *, workers, prefetch, memory_limit):
        monitor = getattr(adapt.monitor, "_core", adapt.monitor)
        self._core = _core.adapt_shmpool(shmpool, policy=adapt.policy, weights=adapt.weights, name=adapt.name,
                                      monitor=monitor, trace=adapt.trace, cpu_limit=float(adapt.cpu_limit or 0),
                                      memory_limit=memory_limit, pinned=adapt.pinned, workers=workers,
                                      prefetch=prefetch, most_workers=max(workers, most_workers()), decided=adapt.decided)  # fmt: skip
        self._follows = threading.Lock()  # held by the thread
        self._follows.acquire()
        # Thread.start() would wait until the thread runs: milliseconds where workers have all CPUs.
        self._thread = _thread.start_new_thread(_follow, (self._core, weakref.ref(pool), self._follows))

    def get(self, knob):
        """Return the value of a knob."""
        return self._core.get(knob)

    def set(self, knob, value):
        """Set a knob for the user: no policy changes it any more."""
        self._core.set(knob, value)

    def watch(self, pid):
        """Count the CPU time of that process as the pool's."""
        self._core.watch(pid)

    def decisions(self, after=0):
        """Return decisions as tuples (drapps.sched.Decision.of)."""
        return self._core.decisions(after)

    def end(self):
        """Stop turning knobs, and end the thread."""
        self._core.stop()
        if self._thread != threading.get_ident():
            with self._follows:
                pass


def _follow(core, pool_ref, follows):
    """Run the thread."""
    _core.name_process("drapps-control")  # in which it is a thread's name
    try:
        _apply_proposals(core, pool_ref)
    finally:
        follows.release()


def _apply_proposals(core, pool_ref):
    """Apply proposals until the controller is stopped or the pool is gone."""
    number = 0
    while True:
        try:
            proposed = core.wait_proposal(number, POLL_MS)
        except StopIteration:
            return
        pool = pool_ref()
        if pool is None:
            return
        if proposed is not None:
            number = proposed
            pool.follow(core)
        del pool
