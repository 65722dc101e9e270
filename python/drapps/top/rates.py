"""Rates of running loaders: differences between two reads of their status (drapps.live)."""

import math
import time

from drapps import live
from drapps.printable import printable

SORTS = ("age", "rate", "wait", "name")


class Loader:
    """A running loader: its last status, and the rates since the one before."""

    def __init__(self, status, before=None, now_ns=None):
        self.status = status
        self.key = status["pid"], status["loader"]
        self.flow, self.knobs, self.sensors = status["flow"], status["knobs"], status["sensors"]
        self.decisions, self.last = status["decisions"], status["last"]
        now_ns = time.monotonic_ns() if now_ns is None else now_ns
        self.now = now_ns * 1e-9
        self.age = (now_ns - status["started_ns"]) * 1e-9
        self.silent = (now_ns - status["time_ns"]) * 1e-9  # seconds since its last status
        self.rates = rates(before or {"time_ns": status["started_ns"], "flow": {}}, status)

    @property
    def name(self):
        """The name of the data set."""
        return self.status["name"] or "(no name)"

    @property
    def bound(self):
        """What limits the loader, by its last decision."""
        return self.last["bound"] if self.last else "unknown"


def rates(before, after):
    """Return a dict of the rates between two statuses, without unknown ones."""
    seconds = (after["time_ns"] - before["time_ns"]) * 1e-9
    if seconds <= 0:
        return {}
    grown = {name: value - before["flow"].get(name, 0.0) for name, value in after["flow"].items()}
    found = {"seconds": seconds}
    for name in ("samples", "batches", "bytes_read", "cpu"):
        found[name] = grown.get(name, 0.0) / seconds
    for name, part, whole in RATIOS:
        total = sum(grown.get(key, 0.0) for key in whole)
        if total > 0:
            found[name] = grown.get(part, 0.0) / total
    return found


# (name, numerator, denominator): shares, and times per sample or batch.
RATIOS = (
    ("wait", "wait", ("wait", "step")),
    ("step", "step", ("batches",)),
    ("latency", "latency", ("batches",)),
    ("read", "read", ("worked",)),
    ("work", "work", ("worked",)),
    ("slow", "slow", ("worked",)),
    ("hits", "cache_hits", ("cache_hits", "cache_misses")),
)


class Watcher:
    """Polls the statuses and remembers the previous ones.

    pids: the processes to watch; empty: all.
    """

    def __init__(self, pids=(), read=live.read):
        self._pids = tuple(pids) or (0,)
        self._read = read
        self._before = {}

    def poll(self):
        """Return (the running loaders, oldest first; messages about unreadable ones)."""
        found = [checked(status) for pid in self._pids for status in self._read(pid)]
        loaders = [self._compare(status) for status in found if "unreadable" not in status]
        self._before = {loader.key: loader.status for loader in loaders}
        return loaders, [_complaint(status) for status in found if "unreadable" in status]

    def _compare(self, status):
        before = self._before.get((status["pid"], status["loader"]))
        if before and before["started_ns"] != status["started_ns"]:
            before = None  # another process with the same id
        return Loader(status, before)


# --- checks: a file of another program may contain anything ---


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _text(value):
    return isinstance(value, str)


def _list(item):
    return lambda value: isinstance(value, list) and all(map(item, value))


def _table(item):
    return lambda value: isinstance(value, dict) and all(map(item, value.values()))


def _members(**checks):
    return lambda value: isinstance(value, dict) and all(k in value and check(value[k]) for k, check in checks.items())


def _change(value):
    return _list(_number)(value) and len(value) == 2


_decision = _members(number=_number, time_ns=_number, bound=_text, reason=lambda value: value is None or _text(value),
                     guarded=lambda value: isinstance(value, bool), changes=_table(_change))  # fmt: skip
_status = _members(
    name=_text, policy=_text, started_ns=_number, time_ns=_number, sensors=_table(_number), levels=_table(_number),
    flow=_table(_number), knobs=_table(_number), bounds=_table(_number), cpu=_list(_number),
    decisions=_list(_decision), last=lambda value: value is None or _decision(value),
)  # fmt: skip


def checked(status):
    """Return the status with its texts safe to print, or one that says "unreadable"."""
    sound = "unreadable" in status or (_status(status) and _list(_text)(status.get("modelled", [])))
    if not sound:
        known = {key: status.get(key) for key in ("pid", "loader", "command")}
        status = {**known, "unreadable": "its status is damaged"}
    return _printable(status)


def _printable(value):
    if isinstance(value, dict):
        return {printable(key): _printable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_printable(entry) for entry in value]
    return printable(value) if isinstance(value, str) else value


def _complaint(status):
    return f"process {status['pid']} ({status['command']}): {status['unreadable']}"


def arrange(loaders, sort):
    """Return the loaders sorted by age (oldest first), rate or wait (highest first), or name."""
    keys = {
        "age": lambda loader: -loader.age,
        "rate": lambda loader: -loader.rates.get("samples", 0.0),
        "wait": lambda loader: -loader.rates.get("wait", 0.0),
        "name": lambda loader: (loader.name, loader.key),
    }
    return sorted(loaders, key=keys[sort])
