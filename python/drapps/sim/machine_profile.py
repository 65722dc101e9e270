"""MachineProfile: what the simulator has to know of a real machine with a data set, as a JSON file."""

import json
import math
from typing import Any, NamedTuple

from drapps import _core
from drapps.atomic_write import write_atomic
from drapps.real_number import is_real
from drapps.sim.simulation import fields, set_text

FORMAT = 1


class MachineProfile(NamedTuple):
    """Fields of the simulator as they were measured, and what else was seen."""

    set: dict[str, float]
    facts: dict[str, Any]  # for people: the data set, CPU times of ops, rates

    def set_text(self) -> str:
        """Return the fields as the simulator takes them."""
        return set_text(self.set) or ""

    def save(self, path: str) -> None:
        """Write the profile."""
        text = json.dumps({"drapps_profile": FORMAT, **self._asdict()}, indent=2)
        write_atomic(path, (text + "\n").encode("utf-8"))

    @classmethod
    def load(cls, path: str) -> "MachineProfile":
        """Read a profile; raise where it is none, or a field is wrong."""
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except ValueError as error:
            raise _core.FormatError(f"{path}: not a profile: {error}") from None
        if not isinstance(found, dict) or found.get("drapps_profile") != FORMAT:
            raise _core.FormatError(f"{path}: not a profile of drapps scheduler calibrate, format {FORMAT}")
        values, facts = found.get("set"), found.get("facts")
        if not isinstance(values, dict) or not isinstance(facts, dict):
            raise _core.FormatError(f"{path}: set and facts must be objects")
        rows = {row.name: row for row in fields()}
        for name, value in values.items():
            row = rows.get(name)
            if row is None:
                raise _core.FormatError(f"{path}: the simulator has no field {name!r}")
            if not is_real(value) or not math.isfinite(value) or not row.least <= value <= row.most:
                raise _core.FormatError(
                    f"{path}: {name} must be a number from {row.least:g} to {row.most:g}, got {value!r}"
                )
        return cls(values, facts)
