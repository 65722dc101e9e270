"""Simulation: one simulated loader with its machine and its consumer; and the simulator's tables."""

import functools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from drapps import _core
from drapps.monitor import Snapshot
from drapps.real_number import is_real
from drapps.sched import Decision, check_policy, weights_text

Decisions = tuple[Decision, ...]


class Field(NamedTuple):
    """A number that describes a simulated machine, load, training or run."""

    name: str
    group: str  # "machine", "workload", "training" or "run"
    unit: str
    least: float
    most: float
    default: float
    doc: str


class Signal(NamedTuple):
    """Something that disturbances change while a simulation runs."""

    name: str
    doc: str


class Preset(NamedTuple):
    """A row of the table of machines, workloads or models: its fields as "name=value,..."."""

    name: str
    doc: str
    set: str


class Scenario(NamedTuple):
    """A row of the table of scenarios."""

    name: str
    doc: str
    weights: str
    varied: bool  # instances draw demand, costs and trainer, too


class Result(NamedTuple):
    """What happened since the begin of a simulation, as it was, without noise."""

    seconds: float
    samples: float
    batches: float
    wait: float  # share of the time in which the consumer waited
    cpus: float  # mean that workers and consumer used
    watts: float
    latency: float  # mean seconds from the begin of a batch to its end
    throttled: float
    cache_hits: float
    reward: float  # mean over seconds
    decisions: int
    changes: int
    ticks: int
    terms: dict[str, float]
    knobs: dict[str, float]  # means over time

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.samples / self.seconds if self.seconds else 0.0


@functools.cache
def _tables() -> Any:
    return json.loads(_core.sim_json())


def fields() -> tuple[Field, ...]:
    """Return all numbers that describe a simulation; `set=` takes their names."""
    return tuple(Field(**row) for row in _tables()["fields"])


def signals() -> tuple[Signal, ...]:
    """Return what disturbances change."""
    return tuple(Signal(**row) for row in _tables()["signals"])


def machines() -> tuple[Preset, ...]:
    """Return the presets of machines."""
    return tuple(Preset(**row) for row in _tables()["machines"])


def workloads() -> tuple[Preset, ...]:
    """Return the presets of workloads."""
    return tuple(Preset(**row) for row in _tables()["workloads"])


def models() -> tuple[Preset, ...]:
    """Return the presets of models that are trained."""
    return tuple(Preset(**row) for row in _tables()["models"])


def scenarios() -> tuple[Scenario, ...]:
    """Return the scenarios."""
    return tuple(Scenario(**row) for row in _tables()["scenarios"])


def set_text(values: Any) -> str | None:
    """Return set= as text for the library."""
    if values is None or isinstance(values, str):
        return values or None
    if not isinstance(values, Mapping):
        raise TypeError(f"set must be text or {{field: number}}, got {values!r}")
    for name, value in values.items():
        if not is_real(value):
            raise _core.ArgumentError(f"set: {name} must be a number, got {value!r}")
    return ",".join(f"{name}={float(value):.17g}" for name, value in values.items()) or None


def check_seconds(name: str, value: Any) -> float:
    """Return seconds of virtual time as a float; raise unless they are above 0 and at most 1e7."""
    if not is_real(value) or not 0 < value <= 1e7:
        raise _core.ArgumentError(f"{name} must be a number above 0 and up to 1e7, got {value!r}")
    return float(value)


class Simulation:
    """A simulated loader at the time 0 of the instance that a seed draws.

    >>> with_analytic = Simulation(machine="laptop", scenario="periodic", seed=1)
    >>> with_analytic.run("analytic", seconds=60).seconds
    60.0
    """

    def __init__(
        self,
        *,
        machine: str | None = None,
        workload: str | None = None,
        model: str | None = None,
        scenario: str | None = None,
        set: Mapping[str, float] | str | None = None,
        weights: Any = None,
        seed: int = 0,
    ) -> None:
        """Open a simulation; names are those of machines(), workloads(), models() and scenarios()."""
        self.seed = seed
        self._sim = _core.open_sim(machine, workload, model, scenario, set_text(set), weights_text(weights), seed)

    def run(self, policy: str | None = None, *, seconds: float = 120) -> Result:
        """Run a policy for some virtual time, as a controller does; return what happened since the begin."""
        self.decisions(policy, seconds=seconds, most=0)
        return self.result()

    def decisions(self, policy: str | None = None, *, seconds: float = 120, most: int = 10_000) -> Decisions:
        """Run a policy for some virtual time; return its decisions, at most so many."""
        if policy is not None:
            check_policy(policy)
        rows = self._sim.run(policy, check_seconds("seconds", seconds), most)
        return tuple(Decision.of(row) for row in rows)

    def advance(self, seconds: float) -> None:
        """Let virtual time pass with the knobs as they are."""
        self._sim.advance(check_seconds("seconds", seconds))

    def reset(self, seed: int | None = None) -> None:
        """Begin again; None: with the same instance."""
        self.seed = self.seed if seed is None else seed
        self._sim.reset(self.seed)

    def set(self, knob: str, value: float) -> None:
        """Set a knob; it takes effect after the instance's action delay."""
        self._sim.set(knob, float(value))

    def get(self, knob: str) -> float:
        """Return the value of a knob."""
        return self._sim.get(knob)

    def field(self, name: str) -> float:
        """Return a field of the instance, as presets, draws and set= made it."""
        return self._sim.field(name)

    def result(self) -> Result:
        """Return what happened since the begin."""
        return Result(**self._sim.look())

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot, as a monitor would show it: with noise and delay."""
        return Snapshot(self._sim.snapshot())

    def flow(self) -> dict[str, float]:
        """Return what the loader reports to its policy."""
        return self._sim.flow()
