"""worker_init_fn: what a worker calls before its first sample."""

import functools

from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data.dataloader import _sharding_worker_init_fn

from drapps import cached

# Trainers give loaders functions of these packages, which seed a worker and leave its data set alone.
SEEDING = {"transformers", "lightning", "lightning_fabric", "pytorch_lightning", "accelerate"}


def harmless(function):
    """The function cannot have changed the data set, so batches may be made without it."""
    while isinstance(function, functools.partial):
        function = function.func
    return function is None or getattr(function, "__module__", "").split(".")[0] in SEEDING


class Caching:
    """Makes the cache of drapps.deterministic functions active in the worker first."""

    def __init__(self, init, loader):
        self._init, self._folder, self._limit = init, loader.cache, loader.cache_limit
        self._adaptive = loader.adaptive_compression

    def __call__(self, worker):
        cached.activate(self._folder, self._limit, adaptive=self._adaptive)
        if self._init is not None:
            self._init(worker)


def of_workers(loader, iterator):
    """The function that workers call: the user's, after torch's own, which shards data pipes, and the cache."""
    found = loader.worker_init_fn
    if isinstance(iterator._dataset, (IterDataPipe, MapDataPipe)):
        found = functools.partial(_sharding_worker_init_fn, found, iterator._world_size, iterator._rank)
    return found if loader.cache is None else Caching(found, loader)
