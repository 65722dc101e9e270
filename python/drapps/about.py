"""What this build and this machine are."""

import json
import math
from typing import Any

from drapps import _core


def info() -> dict[str, Any]:
    """Version, CPU level, codecs, ops and limits of this machine, as a dict.

    >>> import drapps
    >>> drapps.info()["version"] == drapps.__version__
    True
    """
    facts: dict[str, Any] = json.loads(_core.info())
    return facts


def usual_workers(cpu_limit: float | None = None) -> int:
    """The workers of a loader where nobody says how many: as many as the container has CPUs, or as may be used."""
    most: int = info()["limits"]["workers"]
    return min(most, math.ceil(cpu_limit)) if cpu_limit else most
