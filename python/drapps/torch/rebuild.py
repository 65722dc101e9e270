"""Loaders that trainers build anew stay drapps's.

Accelerate takes the attributes of a loader and makes a torch.utils.data.DataLoader of them.  The number of workers
that it hands on knows that it came from a drapps loader (workers.Count), so the name that Accelerate calls is replaced,
in Accelerate's own module, by a function that makes the kind of loader that the attributes came from.  torch is left
alone.  With use_stateful_dataloader it would make torchdata's StatefulDataLoader; drapps's has states anyway.
"""

import functools
import sys

from torch.utils import data

from drapps.torch.workers import Count

MODULE = "accelerate.data_loader"

# Arguments that are handed on.  Ranks are Accelerate's business, and a seed is in the generator.
OPTIONS = ("on_bad_sample", "max_bad", "memory_limit", "cpu_limit", "cache", "cache_limit", "lanes", "policy",
           "adaptive_compression", "weights", "trace", "record")


def same_kind(*args, num_workers=0, **kwargs):
    """torch.utils.data.DataLoader, or drapps.DataLoader when the attributes came from one."""
    if not isinstance(num_workers, Count):
        return data.DataLoader(*args, num_workers=num_workers, **kwargs)
    from drapps.torch.dataloader import DataLoader

    return DataLoader(*args, num_workers=num_workers, **kwargs, **num_workers.options)


def stateful_as_it_is(init):
    """DataLoaderAdapter.__init__, but for drapps's loaders without torchdata: Accelerate saves and loads their states
    by the attribute use_stateful_dataloader."""

    @functools.wraps(init)
    def made(self, dataset, use_stateful_dataloader=False, **kwargs):
        ours = isinstance(kwargs.get("num_workers"), Count)
        init(self, dataset, use_stateful_dataloader=use_stateful_dataloader and not ours, **kwargs)
        self.use_stateful_dataloader = use_stateful_dataloader

    return made


def watch():
    """Called when someone reads a loader's number of workers, which is before it is built anew."""
    module = sys.modules.get(MODULE)
    if module is None or getattr(module, "DataLoader", None) is not data.DataLoader:
        return
    module.DataLoader = same_kind
    adapter = getattr(module, "DataLoaderAdapter", None)
    if adapter is not None:  # since 0.34, with which states came
        adapter.__init__ = stateful_as_it_is(adapter.__init__)
