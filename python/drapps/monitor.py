"""Monitor: reads CPU, memory, storage, network, GPU, energy and pipelines ten times a second."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from drapps import _core
from drapps.real_number import is_real

LEAST, MOST = 0.01, 1  # seconds between snapshots


class Sensor(NamedTuple):
    """A row of the table of sensors."""

    name: str
    unit: str
    full: str  # the value that is level 1.0
    doc: str


class Snapshot(Mapping[str, float]):
    """One reading: a mapping from the names of the available sensors to values in their units."""

    def __init__(
        self, facts: tuple[int, int, dict[str, float], dict[str, float], list[str], tuple[float, ...]]
    ) -> None:
        time_ns, self.number, self._values, self.levels, modelled, self.cpu = facts
        self.time = time_ns * 1e-9  # by time.monotonic()
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
    """Watches the machine in a native thread.

    interval: seconds between snapshots, 0.01 to 1.
    history: number of snapshots that are kept.
    root: a folder with the /proc and /sys of another machine; "": this machine.

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
        """Seconds between snapshots; can be set."""
        return self._core.interval_ms / 1000

    @interval.setter
    def interval(self, seconds: float) -> None:
        self._core.interval_ms = _milliseconds(seconds)

    def latest(self) -> Snapshot:
        """Return the newest snapshot.  The first one, made on opening, lacks sensors that need two readings."""
        return Snapshot(self._core.latest())

    def wait(self, after: int = 1, timeout: float = 10.0) -> Snapshot | None:
        """Wait for the first snapshot with a number above `after`; return None after `timeout` seconds."""
        facts = self._core.wait(after, round(timeout * 1000))
        return None if facts is None else Snapshot(facts)

    def history(self, after: int = 0) -> list[Snapshot]:
        """Return the kept snapshots with numbers above `after`, oldest first."""
        return [Snapshot(facts) for facts in self._core.history(after, self._history)]

    def watch(self, pid: int) -> None:
        """Count another process as own (`cpu_own`) until it ends."""
        self._core.watch(pid)

    def add_busy(self, seconds: float) -> None:
        """Add busy time (`gpu_busy`) of an accelerator that NVML does not know: OpenCL, or emulated."""
        self._core.add_busy(seconds)

    def unwatch(self, pid: int) -> None:
        """Count a process as foreign again."""
        self._core.unwatch(pid)

    def close(self) -> None:
        """Release the monitor; its thread ends when the last owner releases it."""
        self._core.close()

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _milliseconds(interval: Any) -> int:
    if not is_real(interval) or not LEAST <= interval <= MOST:
        raise _core.ArgumentError(f"interval must be a number of seconds from {LEAST} to {MOST}, got {interval!r}")
    return round(interval * 1000)


def sensors() -> tuple[Sensor, ...]:
    """Return all sensors that drapps knows, also those that this machine lacks."""
    return tuple(Sensor(**row) for row in json.loads(_core.sensors_json()))
