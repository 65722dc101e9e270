"""What this build and this machine are."""

import json
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
