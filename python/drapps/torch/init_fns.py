"""worker_init_fn: what a worker calls before its first sample."""

import functools
import sys

from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data.dataloader import _sharding_worker_init_fn

from drapps import cached
from drapps.torch.lower_exact_code import is_confined
from drapps.torch.lower_exact_code import is_of_library

# Trainers give loaders functions of these packages, which seed a worker and leave its data set alone.
SEEDING = {"transformers", "lightning", "lightning_fabric", "pytorch_lightning", "accelerate"}


# What functions of users may reach that only seed a worker, as those of torch's page on reproducibility.
SEEDED = ("torch", "numpy", "numpy.random", "random")
SEED_NAMES = {"seed", "random", "manual_seed", "initial_seed", "set_num_threads", "utils", "data", "get_worker_info",
              "id", "num_workers"}  # fmt: skip


def harmless(function):
    """The function cannot have changed the data set, so batches may be made without it."""
    arguments = ()
    while isinstance(function, functools.partial):
        arguments = (*arguments, *function.args, *function.keywords.values())
        function = function.func
    if function is None or getattr(function, "__module__", "").split(".")[0] in SEEDING:
        return True
    if not all(type(value) in (int, str, bool, type(None)) for value in arguments):
        return False
    return _is_timms(function) or is_confined(function, _may_reach, SEED_NAMES.__contains__)


def _is_timms(function):
    module = sys.modules.get("timm.data.loader")
    return function is getattr(module, "_worker_init", module) and is_of_library(function, module)


def _may_reach(value):
    modules = (sys.modules.get(name) for name in SEEDED)
    return type(value) in (int, float) or value is int or any(value is module for module in modules if module)


class Caching:
    """Makes the cache of drapps.deterministic functions active in the worker first."""

    def __init__(self, init, loader):
        self._init, self._folder, self._limit = init, loader.cache, loader.cache_limit
        self._adaptive = loader.adaptive_compression

    def __call__(self, worker):
        cached.activate(self._folder, self._limit, adaptive=self._adaptive)
        if self._init is not None:
            self._init(worker)


class LookingAgain:
    """The user's function, which may change transforms; whether what runs natively is still right is looked at then."""

    def __init__(self, init, mixed):
        self._init, self._mixed = init, mixed

    def __call__(self, worker):
        self._init(worker)
        for dataset in self._mixed:
            dataset.look_again()


def of_workers(loader, iterator):
    """The function that workers call: the user's, after torch's own, which shards data pipes, and the cache."""
    found = loader.worker_init_fn
    if loader._plan is not None and loader._plan.mixed and not harmless(found):
        found = LookingAgain(found, loader._plan.mixed)
    if isinstance(iterator._dataset, (IterDataPipe, MapDataPipe)):
        found = functools.partial(_sharding_worker_init_fn, found, iterator._world_size, iterator._rank)
    return found if loader.cache is None else Caching(found, loader)
