"""What running loaders of this user show to other programs: `drapps top` reads it, and so may you."""

import json
from typing import Any

from drapps import _core


def read(pid: int = 0) -> list[dict[str, Any]]:
    """All loaders that are running (0), or those of one process; oldest first.  The keys are those of drapps/live.h."""
    return json.loads(_core.live_read(pid))
