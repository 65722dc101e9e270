"""Waits for batches as ranges of torch.profiler, while one runs; without one, the cost is a look-up."""

import sys
from contextlib import nullcontext

_nothing = nullcontext()


def is_profiled():
    """Whether torch.profiler runs."""
    profiler = sys.modules.get("torch.autograd.profiler")
    return profiler is not None and getattr(profiler, "_is_profiler_enabled", False)


def wait_range():
    """A context for the time in which a consumer waits for a batch."""
    return sys.modules["torch.autograd.profiler"].record_function("drapps: wait for batch") if is_profiled() else _nothing
