"""Marks waits for batches as ranges in torch.profiler.  Costs one dict look-up while no profiler runs."""

import sys
from contextlib import nullcontext

_nothing = nullcontext()


def is_profiled():
    """Return whether torch.profiler is running."""
    profiler = sys.modules.get("torch.autograd.profiler")
    return profiler is not None and getattr(profiler, "_is_profiler_enabled", False)


def wait_range():
    """Return a context manager for the time in which the consumer waits for a batch."""
    if not is_profiled():
        return _nothing
    return sys.modules["torch.autograd.profiler"].record_function("drapps: wait for batch")
