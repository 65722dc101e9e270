"""Tuning: the policy settings of a loader with worker processes, and the controller of its latest pass."""

import json
import os

from drapps import _core
from drapps.procpool.pool_controller import Adapt
from drapps.sched import Decision, check_environment, knobs, policy_name, weights_text
from drapps.trace import tell, warn_if_broken, warn_if_renamed


class Tuning:
    """The tuning of one loader, over its passes."""

    def __init__(self, policy, monitor, adaptive_compression, weights, trace, pinned):
        check_environment()
        self.policy, self.monitor, self.adaptive_compression = policy, monitor, adaptive_compression
        self.weights = weights_text(weights)
        self.trace = None if trace is None else os.fspath(trace)
        self.pinned = pinned
        self.learnt = {}  # knob: where the controller of the last pass left it
        self.overrides = {}  # knob: the value that the user set; kept in later passes
        self._writer = None
        self._running = None  # what the latest pass ran on: the native loader, or a controller

    def native(self):
        """The arguments of a native loader."""
        return {"policy": self.policy, "resource_monitor": self.monitor, "weights": self.weights, "trace": self.trace,
                "adaptive_compression": self.adaptive_compression}  # fmt: skip

    def of_processes(self, name, cpu_limit, settings, pinned=(), **about):
        """The settings of a pool's controller.  name: of the data set; settings, about: of the run, for a trace of it."""
        if self._writer is None:  # one file for all passes; named as by loader_trace.c
            meta = {"kind": "processes", "data": name, "settings": settings, **about}
            self._writer = _core.open_trace(self.trace, json.dumps(meta))
            warn_if_renamed(self.trace, self._writer and self._writer.status())
        found = self.decisions()
        return Adapt(self.policy, self.monitor, self.weights, cpu_limit or 0, self._writer, name,
                     (*self.pinned, *pinned), found[-1].number if found else 0)  # fmt: skip

    def tell(self, event, **members):
        """Writes an event into the trace, where there is one."""
        tell(self._writer, event, **members)

    def pin(self, knob, value):
        """Sets a knob for the user: no policy changes it, in later passes neither."""
        self.pinned = tuple(dict.fromkeys((*self.pinned, knob)))
        self.learnt.pop(knob, None)
        self.overrides[knob] = value

    # --- looking inside ---

    def attach(self, running):
        """Names what the pass runs on: a native loader or a controller, with get(knob) and decisions(after)."""
        self._running = running

    def get(self, knob):
        """Returns the user's value of a knob, or that of the latest pass; None: not known yet."""
        if knob in self.overrides:
            return self.overrides[knob]
        return None if self._running is None else self._running.get(knob)

    def decisions(self, after=0):
        """A list of drapps.Decision."""
        found = self._running.decisions(after) if self._running is not None else []
        return [one if isinstance(one, Decision) else Decision.of(one) for one in found]

    @property
    def policy_name(self):
        """The name of the policy that runs."""
        return policy_name(self.policy)

    def stats(self, settings):
        """policy, knobs, workers, prefetch, decisions and trace, as those of a native loader.

        settings: knobs whose value is known before a pass runs; others are None until then.
        """
        running, found = self._running, self.decisions()
        values = {knob.name: None if running is None else running.get(knob.name) for knob in knobs()}
        values |= {knob: value for knob, value in settings.items() if values[knob] is None} | self.overrides
        return {"policy": self.policy_name, "knobs": values, "workers": values["workers"],
                "prefetch": values["prefetch"], "decisions": found[-1].number if found else 0,
                "trace": self._told_trace()}  # fmt: skip

    def _told_trace(self):
        return getattr(self._running, "_trace", None) if self._writer is None else self._writer.status()

    def close(self):
        """Ends the trace."""
        writer, self._writer = self._writer, None
        if writer is not None:
            told = writer.status()
            writer.close()
            warn_if_broken(told)

    def __getstate__(self):
        """A copy has no pass that runs, and neither monitor nor trace of another process."""
        return {**vars(self), "_writer": None, "_running": None, "monitor": None}
