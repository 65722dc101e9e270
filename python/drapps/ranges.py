"""Waits for batches as ranges of torch.profiler, while one runs; without one, the cost is a look-up."""

import sys
from contextlib import nullcontext

_nothing = nullcontext()


def wait_range():
    """A context for the time in which a consumer waits for a batch."""
    profiler = sys.modules.get("torch.autograd.profiler")
    if profiler is None or not getattr(profiler, "_is_profiler_enabled", False):
        return _nothing
    return profiler.record_function("drapps: wait for batch")
