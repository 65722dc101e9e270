"""Facts of this build and this machine."""

import json
import math
from typing import Any

from drapps import _core


def info() -> dict[str, Any]:
    """Return version, CPU level, codecs, ops and limits of this machine as a dict.

    >>> import drapps
    >>> drapps.info()["version"] == drapps.__version__
    True
    """
    facts: dict[str, Any] = json.loads(_core.info())
    return facts


def usual_workers(cpu_limit: float | None = None) -> int:
    """Return the default number of workers: the CPUs of the container, or fewer under a cpu_limit."""
    most: int = info()["limits"]["workers"]
    return min(most, math.ceil(cpu_limit)) if cpu_limit else most
