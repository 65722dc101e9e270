"""How many workers: as many as the user says, or as many as the container has CPUs for; and what a worker calls before
its first sample (worker_init_fn).

The loaders of a process that leave the choice to drapps share the CPUs among those that run at the same time; the
ranks of a node share the container's (LOCAL_WORLD_SIZE, which the limits take into account).
"""

import functools
import multiprocessing
import operator
import sys
import threading
import weakref
from typing import Any

import torch
from torch.utils import data
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data.dataloader import _sharding_worker_init_fn

from drapps import cached
from drapps.build_info import usual_workers
from drapps.torch.lower_exact_code import is_confined, is_of_library

_lock = threading.Lock()
_running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # by iterator: workers chosen by drapps


class Count(int):
    """A number of workers that remembers who chose it, and the other arguments of its loader.

    Trainers that build a loader anew from its attributes hand it on: see watch().
    """

    def __new__(cls, n, decided=False, options=None):
        self = super().__new__(cls, operator.index(n))  # as torch, which has no half a worker
        self.decided = decided
        self.options = options or {}
        return self

    def __reduce__(self):
        return Count, (int(self), self.decided, self.options)


class _NotGiven(Count):
    """Shown by help() in place of a number."""

    def __repr__(self):
        return "<decided by drapps>"


NOT_GIVEN = _NotGiven(0, decided=True)


def accelerator_in_use():
    """Memory of an accelerator does not survive a fork."""
    if not torch.accelerator.is_available():
        return False
    module = getattr(torch, torch.accelerator.current_accelerator().type, None)
    return bool(module and getattr(module, "is_initialized", bool)())


def why_not_fork():
    """The reason why no processes are started unless the user asks for them; None: they may be.

    Processes that are not forked need a data set that can be pickled and a program that can be imported.
    """
    if accelerator_in_use():
        return "an accelerator is in use"
    method = multiprocessing.get_start_method(allow_none=True)
    return None if method in (None, "fork") else f"the start method of multiprocessing is {method}"


def why_no_children():
    """Why this process may have none; None: it may.  Workers of another loader are daemons of multiprocessing, too."""
    return "this is a daemon of multiprocessing" if multiprocessing.current_process().daemon else None


def decide(cpu_limit, iterable, needs_workers):
    """The number of workers when the user gave none.  Several would each read all of an iterable data set."""
    if not needs_workers and why_no_children():
        return 0
    return 1 if iterable else usual_workers(cpu_limit)


def share(iterator, wanted, decided):
    """The workers that an iterator gets now: what others of drapps's choice have is taken off, one always stays.  Where
    samples wait more than they compute, a policy may have wanted more workers than there are CPUs: it gets these."""
    if not decided:
        return wanted
    with _lock:
        n = max(1, min(wanted, max(wanted, usual_workers()) - sum(_running.values())))
        _running[iterator] = n
    return n


def give_back(iterator):
    """The iterator's workers are gone."""
    with _lock:
        _running.pop(iterator, None)


# --- worker_init_fn ---

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
        self._adaptive, self._memory = loader.adaptive_compression, loader.cache_memory

    def __call__(self, worker):
        cached.activate(self._folder, self._limit, adaptive=self._adaptive, memory=self._memory)
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


def init_fn_of(loader, iterator):
    """The function that workers call: the user's, after torch's own, which shards data pipes, and the cache."""
    found = loader.worker_init_fn
    if loader._plan is not None and loader._plan.mixed and not harmless(found):
        found = LookingAgain(found, loader._plan.mixed)
    if isinstance(iterator._dataset, (IterDataPipe, MapDataPipe)):
        found = functools.partial(_sharding_worker_init_fn, found, iterator._world_size, iterator._rank)
    return Caching(found, loader) if loader.cache is not None or loader.cache_memory else found


# --- loaders that trainers build anew ---

# Accelerate takes the attributes of a loader and makes a torch.utils.data.DataLoader of them.  The number of workers
# that it hands on knows that it came from a drapps loader (Count), so the name that Accelerate calls is replaced, in
# Accelerate's own module, by a function that makes the kind of loader that the attributes came from.  torch is left
# alone.  With use_stateful_dataloader it would make torchdata's StatefulDataLoader; drapps's has states anyway.
MODULE = "accelerate.data_loader"

# Arguments that are handed on.  Ranks are Accelerate's business, and a seed is in the generator.
OPTIONS = ("on_bad_sample", "max_bad", "memory_limit", "cpu_limit", "cache", "cache_limit", "cache_memory", "offload",
           "ranges", "lanes", "policy", "adaptive_compression", "weights", "trace", "record")


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
