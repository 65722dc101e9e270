"""DRAADPDataLoader and DRAPPSLoader: loaders by the names and arguments under which they were first described.

The first is a DataLoader whose policy weighs throughput, latency, balance and energy; the second takes its settings
from a file, its steps from a list and its policy from another file, for data sets of torch and for drapps's own.
"""

import os
from functools import reduce

from torch.utils.data import IterableDataset

from drapps import _core, config as configs
from drapps.optable import TABLE, Op
from drapps.pipeline import Pipeline, read
from drapps.torch.dataloader import DataLoader
from drapps.torch.native_iter import MAX_PREFETCH

PREFETCH_FACTOR = 2  # torch's, and so no proposal of the user's


class DRAADPDataLoader(DataLoader):
    """A drapps.DataLoader, and so a torch.utils.data.DataLoader, that weighs throughput, latency, balance and energy.

    kwargs: the other arguments of drapps.DataLoader.  prefetch_factor: other than 2, it stays so.

    >>> import torch
    >>> import drapps
    >>> loader = drapps.DRAADPDataLoader(torch.arange(4), batch_size=2, num_workers=0)
    >>> [batch.tolist() for batch in loader]
    [[0, 1], [2, 3]]
    """

    def __init__(self, dataset, batch_size=32, resource_monitor=None, adaptive_compression=True,
                 prefetch_factor=PREFETCH_FACTOR, **kwargs):  # fmt: skip
        kwargs.setdefault("weights", "draadp")
        super().__init__(dataset, batch_size, resource_monitor=resource_monitor,
                         adaptive_compression=adaptive_compression,
                         prefetch_factor=None if prefetch_factor == PREFETCH_FACTOR else prefetch_factor,
                         **kwargs)  # fmt: skip


class DRAPPSLoader:
    """Batches of a data set, by settings from files.

    dataset: a data set of torch, a path that drapps.read takes, whose images are then decoded, or a pipeline.
    config: a TOML or JSON file, or a dict; docs/pytorch.md lists what may be in it.
    steps: applied to each sample after it is decoded, after those of the config: callables, drapps.ops, names of ops,
        or (name, {setting: value}).  Of a data set of torch: callables, which get what it gives.
    policy_path: a file that says which policy to use.
    """

    def __init__(self, dataset, batch_size, config=None, steps=None, policy_path=None):
        if steps is not None and not isinstance(steps, (list, tuple)):
            raise _core.ArgumentError(f"steps must be a list of steps, got {steps!r}")
        found = configs.read(config)
        policy, weights, limits = found.policy.get("name"), found.weights, found.limits
        if policy_path is not None:
            policy, more, limits = configs.read_policy(policy_path)
            weights, limits = more or weights, {**found.limits, **limits}
        settings = {**found.loader, "policy": policy, "weights": weights or "drapps"}
        if isinstance(dataset, (str, os.PathLike)):
            dataset = read(dataset).decode()
        with found.naming():
            dataset = _with_steps(dataset, found.steps)
        make = _of_pipeline if isinstance(dataset, Pipeline) else _of_torch
        self.loader = make(_with_steps(dataset, list(steps or ())), batch_size, settings, limits)

    def __iter__(self):
        return iter(self.loader)

    def __len__(self):
        return len(self.loader)

    def __getattr__(self, name):
        """What else a loader can do: stats, decisions, set, get, state_dict, load_state_dict, explain, close."""
        if name == "loader":  # while it is made or unpickled
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.loader.close()


def _with_steps(dataset, steps):
    """The data set, of either kind, and some steps more."""
    if not steps:
        return dataset
    return reduce(_with_step, steps, dataset) if isinstance(dataset, Pipeline) else _stepped(dataset, steps)


# --- pipelines ---


def _of_pipeline(pipe, batch_size, settings, limits):
    drop, factor = settings.pop("drop_last", False), settings.pop("prefetch_factor", None)
    workers = settings.pop("num_workers", None)
    if workers is not None:
        settings["workers"] = workers
    if factor is not None:
        settings["prefetch"] = min(factor * max(workers or 1, 1), MAX_PREFETCH)
    return pipe.loader(batch_size=batch_size, last="drop" if drop else "partial", cpu_limit=limits.get("cpu") or None,
                       memory_limit=limits.get("memory", 0), **settings)  # fmt: skip


def _with_step(pipe, step):
    """The pipeline and one step more."""
    if isinstance(step, Op):
        return getattr(pipe, step.name)(**step.params)
    name, arguments = (step, {}) if isinstance(step, str) else step if isinstance(step, tuple) else (None, {})
    if name in TABLE:
        try:
            return getattr(pipe, name)(**arguments)
        except TypeError as error:
            raise _core.ArgumentError(f"step {name}: {error}") from None
    if name is not None:
        raise _core.ArgumentError(f"step must be the name of an op, got {name!r}; there are {', '.join(TABLE)}")
    if not callable(step):
        raise _core.ArgumentError("a step must be a callable, an op of drapps.ops, the name of an op, or (name, "
                                  f"settings), got {step!r}")  # fmt: skip
    return pipe.map(step)


# --- data sets of torch ---


class Stepped:
    """A map-style data set whose samples go through some functions."""

    def __init__(self, dataset, steps):
        self.dataset, self.transforms = dataset, steps  # by the names that states look for

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        sample = self.dataset[index]
        for step in self.transforms:
            sample = step(sample)
        return sample


def _stepped(dataset, steps):
    for step in steps:
        if not callable(step) or isinstance(step, Op):
            raise _core.ArgumentError(f"step {step!r}: a data set of torch takes callables; ops need a path or a "
                                      "pipeline of drapps as the data set")  # fmt: skip
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        raise _core.ArgumentError("steps need a data set with __getitem__, not an iterable one")
    return Stepped(dataset, steps)


def _of_torch(dataset, batch_size, settings, limits):
    settings = {key: value for key, value in settings.items() if value is not None}
    return DataLoader(dataset, batch_size, cpu_limit=limits.get("cpu") or None, memory_limit=limits.get("memory", 0),
                      **settings)  # fmt: skip
