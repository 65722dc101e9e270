"""Settings of a loader from a TOML or JSON file or a dict: what is allowed, and errors that name the file and the key.

    [loader]                    [limits]                 [weights]             [policy]
    shuffle = true              cpu = 2.5                preset = "drapps"     name = "analytic"
    seed = 7                    memory = 2_000_000_000   idle = 0.5

    [[steps]]
    op = "random_resized_crop"
    size = 224

A policy file has `policy`, a name, and may have `weights` and `limits`.
"""

import json
import math
import os
import tomllib
from contextlib import contextmanager
from typing import NamedTuple

from drapps import _core
from drapps.sched import OFFLOAD, check_cpus


class Key(NamedTuple):
    """The values that a key may have."""

    kinds: tuple
    least: float | None = None
    allowed: tuple = ()
    most: float = math.inf

    def text(self):
        """Return a description of the allowed values."""
        if self.allowed:
            return "one of " + ", ".join(map(repr, self.allowed))
        names = " or ".join({bool: "true or false", str: "a text", int: "an int", float: "a number"}[kind]
                            for kind in self.kinds if not (kind is int and float in self.kinds))  # fmt: skip
        if self.most < math.inf:
            return f"{names} from {self.least:g} to {self.most:g}"
        return names if self.least is None else f"{names} of at least {self.least:g}"

    def holds(self, value):
        """Return whether a value is allowed."""
        if isinstance(value, bool) != (self.kinds == (bool,)) or not isinstance(value, self.kinds):
            return False
        if self.allowed:
            return value in self.allowed
        return self.least is None or self.least <= value <= self.most


FLAG, TEXT = Key((bool,)), Key((str,))
POLICIES = tuple(row["name"] for row in json.loads(_core.policies_json()))

# The keys that each section of a file may have.  "steps" is a list of tables, each with "op" and the op's settings.
SECTIONS = {
    "loader": {
        "shuffle": FLAG, "drop_last": FLAG, "in_order": FLAG, "lanes": FLAG, "adaptive_compression": FLAG,
        "seed": Key((int,), 0), "num_workers": Key((int,), 0, most=256), "prefetch_factor": Key((int,), 1),
        "on_bad_sample": Key((str,), allowed=("raise", "skip", "replace")), "max_bad": Key((int,), 0),
        "cache": TEXT, "cache_limit": Key((int,), 0), "cache_memory": Key((int,), 0), "trace": TEXT,
        "offload": Key((str,), allowed=OFFLOAD),
        "ranges": Key((str,), allowed=("auto", "on", "off")),
    },
    "limits": {"cpu": Key((int, float), 0), "memory": Key((int,), 0)},
    "weights": {},  # checked by the library, which has the table of terms
    "policy": {"name": Key((str,), allowed=(*POLICIES, "off"))},
}  # fmt: skip


class Config:
    """The checked content of a file or dict.  source: its name in errors."""

    def __init__(self, source, data, allowed=(*SECTIONS, "steps")):
        self.source = source
        for key in data:
            if key not in allowed:
                raise self.error(f"section must be one of {', '.join(allowed)}, got {key!r}")
        for section, keys in SECTIONS.items():
            setattr(self, section, self._section(section, data.get(section, {}), keys))
        if self.limits.get("cpu"):  # 0: none
            with self.naming():
                check_cpus(self.limits["cpu"], "limits.cpu")
        self.steps = self._steps(data.get("steps", []))
        self.weights = self._weights(self.weights)

    def error(self, text):
        """Return the error to raise."""
        return _core.ArgumentError(f"{self.source}: {text}")

    @contextmanager
    def naming(self):
        """Put the name of the file before the text of errors raised inside."""
        try:
            yield
        except _core.ArgumentError as error:
            raise self.error(str(error)) from None

    def _section(self, name, found, keys):
        if not isinstance(found, dict):
            raise self.error(f"{name} must be a table, got {found!r}")
        for key, value in found.items() if keys else ():
            if key not in keys:
                raise self.error(f"{name}: key must be one of {', '.join(keys)}, got {key!r}")
            if not keys[key].holds(value):
                raise self.error(f"{name}.{key} must be {keys[key].text()}, got {value!r}")
        return found

    def _steps(self, steps):
        if not isinstance(steps, list):
            raise self.error(f"steps must be a list of tables, [[steps]], got {steps!r}")
        for step in steps:
            if not isinstance(step, dict) or not isinstance(step.get("op"), str):
                raise self.error(f"each step must be a table with op = the name of an op, got {step!r}")
        return [(step["op"], {key: value for key, value in step.items() if key != "op"}) for step in steps]

    def _weights(self, weights):
        """Return weights as text for the library; None if there are none."""
        terms = [f"{name}={value}" for name, value in weights.items() if name != "preset"]
        text = ",".join(([str(weights["preset"])] if "preset" in weights else []) + terms)
        try:
            if text:
                _core.parse_weights(text)
        except (_core.Error, TypeError) as error:
            raise self.error(str(error)) from None
        return text or None


def read(source):
    """Return a Config from a path, a dict or None."""
    if source is None or isinstance(source, dict):
        return Config("config", source or {})
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise _core.ArgumentError(f"config must be a path, a dict or None, got {source!r}")
    return Config(*_read(source))


def read_policy(path):
    """Return (name, weights, limits) of a policy file."""
    source, data = _read(path)
    name = data.get("policy")
    allowed = SECTIONS["policy"]["name"]
    if not allowed.holds(name):
        raise _core.ArgumentError(f"{source}: policy must be {allowed.text()}, got {name!r}")
    rest = Config(source, {key: value for key, value in data.items() if key != "policy"}, ("weights", "limits"))
    return name, rest.weights, rest.limits


def _read(path):
    """Return (name, content as a dict) of a TOML or JSON file."""
    source = os.fspath(path)
    with open(source, "rb") as file:
        text = file.read()
    try:
        data = json.loads(text) if source.endswith(".json") else tomllib.loads(text.decode())
    except (ValueError, UnicodeDecodeError) as error:
        kind = "JSON" if source.endswith(".json") else "TOML"
        raise _core.FormatError(f"{source}: not {kind}: {error}") from None
    if not isinstance(data, dict):
        raise _core.FormatError(f"{source}: must hold a table of sections, got {type(data).__name__}")
    return source, data
