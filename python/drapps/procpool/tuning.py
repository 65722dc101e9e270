"""Tuning: the policy settings of a loader with worker processes.  Controller: turns the knobs of its pool.

The C controller (drapps/shmpool_controller.h) decides in the thread of a monitor.  Workers and priority are changed by
a thread here, because that takes messages to the zygote.  A controller starts when the processes have worked for
BEGIN_S, so that short passes pay nothing for it; at once where there is a trace or a monitor of the user.
"""

import _thread
import json
import os
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from drapps import _core
from drapps.build_info import info
from drapps.sched import Decision, check_environment, knobs, policy_name, weights_text
from drapps.trace import tell, warn_if_broken, warn_if_renamed

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


class Tuning:
    """The tuning of one loader, over its passes."""

    def __init__(self, policy, monitor, adaptive_compression, weights, trace, pinned):
        check_environment()
        self.policy, self.monitor, self.adaptive_compression = policy, monitor, adaptive_compression
        self.weights = weights_text(weights)
        self.trace = None if trace is None else os.fspath(trace)
        self.pinned = pinned
        self.learnt = {}  # knob: its value at the end of the last pass
        self.overrides = {}  # knob: the value that the user set; kept in later passes
        self._writer = None
        self._running = None  # the native loader or controller of the latest pass
        self._pauses = 0  # of the consumer, one in another

    def native(self):
        """Return the arguments of a native loader."""
        return {"policy": self.policy, "resource_monitor": self.monitor, "weights": self.weights, "trace": self.trace,
                "adaptive_compression": self.adaptive_compression}  # fmt: skip

    def of_processes(self, name, cpu_limit, settings, pinned=(), **about):
        """Return the settings of a pool's controller.  name: the data set; settings: those of the
        run, for its trace."""
        if self._writer is None:  # one file for all passes; named as by loader_trace.c
            meta = {"kind": "processes", "data": name, "settings": settings, **about}
            self._writer = _core.open_trace(self.trace, json.dumps(meta))
            warn_if_renamed(self.trace, self._writer and self._writer.status())
        found = self.decisions()
        return Adapt(self.policy, self.monitor, self.weights, cpu_limit or 0, self._writer, name,
                     (*self.pinned, *pinned), found[-1].number if found else 0)  # fmt: skip

    def tell(self, event, **members):
        """Write an event into the trace, if there is one."""
        tell(self._writer, event, **members)

    def pin(self, knob, value):
        """Set a knob for the user: no policy changes it, also not in later passes."""
        self.pinned = tuple(dict.fromkeys((*self.pinned, knob)))
        self.learnt.pop(knob, None)
        self.overrides[knob] = value

    # --- looking inside ---

    def attach(self, running):
        """Set what the pass runs on: a native loader or a controller, with get(knob) and decisions(after)."""
        if running is self._running:
            return
        self._tell_paused(False)
        self._running = running
        self._tell_paused(True)

    @contextmanager
    def pause(self):
        """Tell what runs that the consumer pauses."""
        self._pauses += 1
        if self._pauses == 1:
            self._tell_paused(True)
        try:
            yield
        finally:
            if self._pauses == 1:
                self._tell_paused(False)
            self._pauses -= 1

    def set_weights(self, weights):
        """Set the weights, of what runs and of later passes."""
        self.weights = weights_text(weights)
        if self._running is not None:
            with suppress(_core.StateError):  # it was closed
                self._running.set_weights(self.weights)

    def _tell_paused(self, paused):
        if self._pauses and self._running is not None:
            with suppress(_core.StateError):  # it was closed
                self._running._set_paused(paused)

    def get(self, knob):
        """Return the user's value of a knob, or that of the latest pass; None: not known yet."""
        if knob in self.overrides:
            return self.overrides[knob]
        return None if self._running is None else self._running.get(knob)

    def decisions(self, after=0):
        """Return the decisions with numbers above `after`: a list of drapps.Decision."""
        found = self._running.decisions(after) if self._running is not None else []
        return [one if isinstance(one, Decision) else Decision.of(one) for one in found]

    @property
    def policy_name(self):
        """Return the name of the policy that runs."""
        return policy_name(self.policy)

    def stats(self, settings):
        """Return policy, knobs, workers, prefetch, decisions and trace, as in the stats() of a native loader.

        settings: knobs whose value is known before a pass runs; the others are None until then.
        """
        running, found = self._running, self.decisions()
        values = {knob.name: None if running is None else running.get(knob.name) for knob in knobs()}
        values |= {knob: value for knob, value in settings.items() if values[knob] is None} | self.overrides
        return {"policy": self.policy_name, "knobs": values, "workers": values["workers"],
                "prefetch": values["prefetch"], "decisions": found[-1].number if found else 0,
                "trace": self._trace_status()}  # fmt: skip

    def _trace_status(self):
        return getattr(self._running, "_trace", None) if self._writer is None else self._writer.status()

    def close(self):
        """End the trace."""
        writer, self._writer = self._writer, None
        if writer is not None:
            status = writer.status()
            writer.close()
            warn_if_broken(status)

    def __getstate__(self):
        """Return the state of a copy: without the running pass, monitor and trace."""
        return {**vars(self), "_writer": None, "_running": None, "_pauses": 0, "monitor": None}


# --- the controller ---


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
                                      prefetch=prefetch, most_workers=max(workers, most_workers()),
                                      decided=adapt.decided)  # fmt: skip
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

    def set_weights(self, weights):
        """Set the weights, as text for the library."""
        self._core.set_weights(weights)

    def _set_paused(self, paused):
        """Say that the consumer does something else for a while, or goes on."""
        self._core.pause(paused)

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
