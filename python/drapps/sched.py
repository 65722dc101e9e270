"""Scheduling of loaders: the tables of knobs, flow counters and policies, and the decisions of policies."""

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from drapps import _core
from drapps.real_number import is_real

CPUS = 0.01, 512  # range of cpu_limit, as in dr__cpu_limit_check
OFFLOAD = ("auto", "off", "all", "resize", "fastflow", "sophon", "sophon+")  # or a number of ops; dr__offload_check


class Knob(NamedTuple):
    """A row of the table of knobs."""

    name: str
    unit: str
    least: float
    most: float
    cooldown_ms: int  # seconds that a knob stays after a change
    whole: bool  # takes only ints
    doc: str


class Flow(NamedTuple):
    """A row of the table of numbers that a pipeline reports."""

    name: str
    kind: str  # "sum": grows from 0; "gauge": the present value
    unit: str
    doc: str


class PolicyParam(NamedTuple):
    """A parameter of a policy, which the user may set: policy="analytic:margin=1.3"."""

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
    """A decision of a policy, with the reward of the time before it."""

    number: int
    time: float  # by time.monotonic()
    bound: str  # what limits the pipeline
    changes: dict[str, tuple[float, float]]  # knob: (from, to)
    reward: float  # sum of weight * term
    terms: dict[str, float]
    weights: dict[str, float]
    guarded: bool  # the guard overruled the policy
    reason: str

    @classmethod
    def of(cls, facts: tuple[Any, ...]) -> "Decision":
        """Make a Decision from the extension's tuple."""
        number, time_ns, *rest = facts
        return cls(number, time_ns * 1e-9, *rest)


# What limits a pipeline, by the name in Decision.bound; the names are those of DR_BOUND_MAP.
LIMITS = {
    "consumer": "the consumer sets the pace: it does not wait for batches",
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
    """Return the changes of a decision as text: "workers 2 → 4, prefetch 2 → 3"."""
    return ", ".join(f"{knob} {_short(before)} → {_short(after)}" for knob, (before, after) in changes.items())


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e6 else f"{value / 1e6:.4g}M"


def knobs() -> tuple[Knob, ...]:
    """Return all knobs; a loader may lack some."""
    return tuple(Knob(**row) for row in json.loads(_core.knobs_json()))


def flows() -> tuple[Flow, ...]:
    """Return all numbers that a pipeline reports to its policy."""
    return tuple(Flow(**row) for row in json.loads(_core.flows_json()))


def policies() -> tuple[Policy, ...]:
    """Return all policies with their parameters; `policy=` takes "name" or "name:param=value,param=value"."""
    rows = json.loads(_core.policies_json())
    return tuple(
        Policy(row["name"], row["doc"], tuple(PolicyParam(**param) for param in row["params"])) for row in rows
    )


# --- checks of arguments ---


def policy_names() -> list[str]:
    """Return the names that policy= takes."""
    return [*(row.name for row in policies()), "off"]


def check_policy(text: Any) -> None:
    """Raise unless policy= is "name" or "name:param=value,..." within the ranges of policies()."""
    if not isinstance(text, str):
        raise _core.ArgumentError(f"policy must be text such as 'analytic' or 'analytic:margin=1.3', got {text!r}")
    _core.check_policy(text)


def check_environment() -> None:
    """Raise if DRAPPS_POLICY, which overrides policy=, is not a policy."""
    _core.check_policy(None)


def policy_name(text: str | None) -> str:
    """Return the name (without parameters) of the policy that runs for policy=text."""
    name = (os.environ.get("DRAPPS_POLICY") or text or "analytic").partition(":")[0]
    return "fixed" if name == "off" else name


def check_knob(name: Any, value: Any) -> float:
    """Return the value as an int or float, as the knob requires; raise if the knob or the value is invalid."""
    rows = {row.name: row for row in knobs()}
    if name not in rows:
        raise _core.ArgumentError(f"knob must be one of {', '.join(map(repr, rows))}, got {name!r}")
    row = rows[name]
    if is_real(value) and row.least <= value <= row.most and not (row.whole and value != int(value)):
        return int(value) if row.whole else float(value)
    kind = "an int" if row.whole else "a number"
    raise _core.ArgumentError(f"{name} must be {kind} from {row.least:g} to {row.most:g}, got {value!r}")


def check_cpus(limit: Any, name: str = "cpu_limit") -> None:
    """Raise if a limit of CPUs is out of range."""
    if not is_real(limit) or not CPUS[0] <= limit <= CPUS[1]:
        raise _core.ArgumentError(f"{name} must be a number from {CPUS[0]} to {CPUS[1]}, got {limit!r}")


def weights_text(weights: Any) -> str | None:
    """Return weights= as text for the library, checked."""
    if weights is None:
        return None
    if isinstance(weights, Mapping):
        spans = {span: changes for span, changes in weights.items() if isinstance(changes, Mapping)}
        always = {name: value for name, value in weights.items() if name not in spans}
        weights = "; ".join([_terms(always), *(f"{span} {_terms(changes)}" for span, changes in spans.items())])
    if not isinstance(weights, str):
        raise TypeError(f"weights must be text, {{name: number}} or {{span: {{name: number}}}}, got {weights!r}")
    _core.parse_weights(weights)
    return weights


def _terms(weights: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={_number(name, value):.17g}" for name, value in weights.items())


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise _core.ArgumentError(f"weights: {name} must be a non-negative number, got {value!r}") from None
