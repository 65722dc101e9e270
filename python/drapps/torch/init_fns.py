"""worker_init_fn: what a worker calls before its first sample."""

import functools

from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data.dataloader import _sharding_worker_init_fn

# Trainers give loaders functions of these packages, which seed a worker and leave its data set alone.
SEEDING = {"transformers", "lightning", "lightning_fabric", "pytorch_lightning", "accelerate"}


def harmless(function):
    """The function cannot have changed the data set, so batches may be made without it."""
    while isinstance(function, functools.partial):
        function = function.func
    return function is None or getattr(function, "__module__", "").split(".")[0] in SEEDING


def of_workers(loader, iterator):
    """The function that workers call: torch's own shards data pipes."""
    if not isinstance(iterator._dataset, (IterDataPipe, MapDataPipe)):
        return loader.worker_init_fn
    return functools.partial(_sharding_worker_init_fn, loader.worker_init_fn, iterator._world_size, iterator._rank)
