"""The status of this user's running loaders, which `drapps top` shows and any program may read."""

import json
from typing import Any

from drapps import _core


def read(pid: int = 0) -> list[dict[str, Any]]:
    """Return the status of the running loaders of one process (0: of all), oldest first; drapps/live.h has the keys."""
    return json.loads(_core.live_read(pid))
