"""What the machine and the pipelines are doing, ten times a second: CPU, memory, storage, network, GPU, energy."""

import json
import os
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any, NamedTuple

from drapps import _core

LEAST, MOST = 0.01, 1  # seconds between snapshots


class Sensor(NamedTuple):
    """A row of the table of sensors."""

    name: str
    unit: str
    full: str  # what level 1.0 means
    doc: str


class Snapshot(Mapping[str, float]):
    """One reading: a mapping of sensor names to values in their units, with what is there and nothing else."""

    def __init__(self, facts: tuple[int, int, dict[str, float], dict[str, float], list[str], tuple[float, ...]]) -> None:
        time_ns, self.number, self._values, self.levels, modelled, self.cpu = facts
        self.time = time_ns * 1e-9  # of time.monotonic()
        self.modelled = frozenset(modelled)  # sensors whose value is an estimate

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Snapshot({self.number}, {self._values})"


class Monitor:
    """Watches the machine in a thread of its own, which runs no Python.

    interval: seconds between snapshots, 0.01 to 1.
    history: how many snapshots are kept.
    root: a folder with the /proc and /sys of another machine; "" is this one.

    >>> import drapps
    >>> with drapps.Monitor() as monitor:
    ...     used = monitor.latest()["mem_used"]
    >>> used > 0
    True
    """

    def __init__(self, interval: float = 0.1, history: int = 300, root: str | os.PathLike[str] = "") -> None:
        self._history = history
        self._core = _core.open_monitor(_milliseconds(interval), history, os.fspath(root))

    @property
    def interval(self) -> float:
        """Seconds between snapshots; may be set."""
        return self._core.interval_ms / 1000

    @interval.setter
    def interval(self, seconds: float) -> None:
        self._core.interval_ms = _milliseconds(seconds)

    def latest(self) -> Snapshot:
        """The newest snapshot.  In the first one, made by opening, what needs two readings is missing."""
        return Snapshot(self._core.latest())

    def wait(self, after: int = 1, timeout: float = 10.0) -> Snapshot | None:
        """The first snapshot with a number above `after`, once it is there; None after `timeout` seconds."""
        facts = self._core.wait(after, round(timeout * 1000))
        return None if facts is None else Snapshot(facts)

    def history(self, after: int = 0) -> list[Snapshot]:
        """The snapshots that are kept, with numbers above `after`, oldest first."""
        return [Snapshot(facts) for facts in self._core.history(after, self._history)]

    def watch(self, pid: int) -> None:
        """Counts another process as own (`cpu_own`) until it ends."""
        self._core.watch(pid)

    def add_busy(self, seconds: float) -> None:
        """An accelerator that NVML does not know, of OpenCL or emulated, was busy for so long more (`gpu_busy`)."""
        self._core.add_busy(seconds)

    def unwatch(self, pid: int) -> None:
        """Counts a process as foreign again."""
        self._core.unwatch(pid)

    def close(self) -> None:
        """Lets go of the monitor; its thread ends with the last who holds it."""
        self._core.close()

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _milliseconds(interval: Any) -> int:
    if not isinstance(interval, Real) or not LEAST <= interval <= MOST:
        raise _core.ArgumentError(f"interval is {interval!r}, allowed are {LEAST} to {MOST} seconds")
    return round(interval * 1000)


def sensors() -> tuple[Sensor, ...]:
    """Every sensor there is, whether this machine has it or not."""
    return tuple(Sensor(**row) for row in json.loads(_core.sensors_json()))
