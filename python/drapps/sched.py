"""Who turns the knobs of a loader, when and why: tables of knobs, flow and policies, and decisions that can be read."""

import json
import os
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

from drapps import _core

CPUS = 0.01, 512  # that a limit may be; dr__cpu_limit_check has the same


class Knob(NamedTuple):
    """A row of the table of knobs."""

    name: str
    unit: str
    least: float
    most: float
    cooldown_ms: int  # for so long it is left alone after it was turned
    whole: bool  # a count, which takes whole numbers alone
    doc: str


class Flow(NamedTuple):
    """A row of the table of what a pipeline tells about itself."""

    name: str
    kind: str  # "sum": grows from 0 on; "gauge": as it is now
    unit: str
    doc: str


class PolicyParam(NamedTuple):
    """A number of a policy that the user may set: policy="analytic:margin=1.3"."""

    name: str
    least: float
    most: float
    default: float
    doc: str


class Policy(NamedTuple):
    """A row of the table of policies."""

    name: str
    doc: str
    params: tuple[PolicyParam, ...]


class Decision(NamedTuple):
    """What a policy decided, and what the time before it was worth."""

    number: int
    time: float  # of time.monotonic()
    bound: str  # what limits the pipeline
    changes: dict[str, tuple[float, float]]  # knob: (from, to)
    reward: float  # sum of weight * term, each with its sign
    terms: dict[str, float]
    weights: dict[str, float]
    guarded: bool  # the guard, not the policy, had the last word
    reason: str

    @classmethod
    def of(cls, facts: tuple[Any, ...]) -> "Decision":
        """From the tuple that the extension makes."""
        number, time_ns, *rest = facts
        return cls(number, time_ns * 1e-9, *rest)


# What limits a pipeline, by the name that a decision has for it; DR_BOUND_MAP has the same.
LIMITS = {
    "trainer": "the trainer sets the pace: it does not wait for batches",
    "cpu": "the CPUs that the loader may use are busy",
    "workers": "all workers are busy while CPUs are idle",
    "blocked": "code in the workers waits: a sleep, a lock, a network",
    "storage": "workers wait for reads",
    "memory": "the memory limit keeps batches from being begun",
    "prefetch": "too few batches are made ahead for how much their times vary",
    "quota": "the container's CPU quota holds the workers back",
    "others": "other programs use the CPUs",
    "unknown": "too little is known yet",
}


def changes_text(changes: Mapping[str, Any]) -> str:
    """What a decision turned, as people read it: "workers 2 → 4, prefetch 2 → 3"."""
    return ", ".join(f"{knob} {_short(before)} → {_short(after)}" for knob, (before, after) in changes.items())


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e6 else f"{value / 1e6:.4g}M"


def knobs() -> tuple[Knob, ...]:
    """Every knob there is; a loader may lack some."""
    return tuple(Knob(**row) for row in json.loads(_core.knobs_json()))


def flows() -> tuple[Flow, ...]:
    """Every number that a pipeline tells its policy."""
    return tuple(Flow(**row) for row in json.loads(_core.flows_json()))


def policies() -> tuple[Policy, ...]:
    """Every policy with its parameters; `policy=` takes "name" or "name:param=value,param=value"."""
    rows = json.loads(_core.policies_json())
    return tuple(Policy(row["name"], row["doc"], tuple(PolicyParam(**param) for param in row["params"])) for row in rows)


# --- what a user says ---


def policy_names() -> list[str]:
    """The names that policy= takes."""
    return [*(row.name for row in policies()), "off"]


def check_policy(text: Any) -> None:
    """Raises on a policy= that is not "name" or "name:param=value,..." within the ranges of policies()."""
    if not isinstance(text, str):
        raise _core.ArgumentError(f"policy must be text such as 'analytic' or 'analytic:margin=1.3', got {text!r}")
    _core.check_policy(text)


def check_environment() -> None:
    """Raises where DRAPPS_POLICY, which overrides policy=, is not a policy."""
    _core.check_policy(None)


def policy_name(text: str | None) -> str:
    """The name of the policy that runs where policy=text, without parameters."""
    name = (os.environ.get("DRAPPS_POLICY") or text or "analytic").partition(":")[0]
    return "fixed" if name == "off" else name


def check_knob(name: Any, value: Any) -> float:
    """The value as the knob of that name has it, an int where it is a count; raises where there is none such."""
    rows = {row.name: row for row in knobs()}
    if name not in rows:
        raise _core.ArgumentError(f"the setting is {name!r}, allowed are {', '.join(map(repr, rows))}")
    row = rows[name]
    if isinstance(value, Real) and row.least <= value <= row.most and not (row.whole and value != int(value)):
        return int(value) if row.whole else float(value)
    kind = "whole numbers" if row.whole else "numbers"
    raise _core.ArgumentError(f"{name} is {value!r}, allowed are {kind} {row.least:g} to {row.most:g}")


def check_cpus(limit: Any, name: str = "cpu_limit") -> None:
    """Raises on a limit of CPUs that is none."""
    if not isinstance(limit, Real) or not CPUS[0] <= limit <= CPUS[1]:
        raise _core.ArgumentError(f"{name} is {limit!r}, allowed are {CPUS[0]} to {CPUS[1]}")


def weights_text(weights: Any) -> str | None:
    """weights= as the library reads it, checked."""
    if weights is None:
        return None
    if isinstance(weights, Mapping):
        weights = ",".join(f"{name}={_number(name, value):.17g}" for name, value in weights.items())
    if not isinstance(weights, str):
        raise TypeError(f"weights must be text or {{name: number}}, got {weights!r}")
    _core.parse_weights(weights)
    return weights


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise _core.ArgumentError(f"weights: {name} is {value!r}, allowed are numbers from 0 on") from None
