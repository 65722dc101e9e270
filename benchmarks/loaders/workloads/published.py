"""The published comparison of SpeedyLoader: its costs, at a tenth, as sleep; eight emulated accelerators.

Published: an offline pass, then for each accelerator an ordered loader over its share of the samples.  Here: offline
and online as one block, and one loader that all accelerators share.  Steps begin together on all accelerators, as
gradients are synchronised.  The loaders exist for the whole training.  `volumes` and `workers` must be divisible among
the accelerators.
"""

import multiprocessing
import os
import random
import tempfile
import time

import numpy as np
from torch.utils.data import Dataset
from torch.utils.data.distributed import DistributedSampler

import drapps

from ..case import Case, Column, Workload
from ..volume_sets import AfterOffline, OfflinePass
from .consumers import Lockstep, drain_each, shared, tally_of
from .eight_consumers import offline_ms, online_ms


def offline_costs(options):
    """Return the offline milliseconds of each volume, scaled."""
    rng = random.Random(1)
    return [offline_ms(rng) * options["scale"] for _ in range(options["volumes"])]


def online_cost(options, epoch, key):
    return online_ms(random.Random(epoch * options["volumes"] + key)) * options["scale"]


def online_costs(options):
    """Return the online milliseconds of each sample of all epochs."""
    return [online_cost(options, epoch, key) for epoch in range(options["epochs"]) for key in range(options["volumes"])]


class Slept(Dataset):
    """Volumes with the published costs and a few bytes."""

    def __init__(self, options):
        self.options, self.costs_ms = options, offline_costs(options)
        # In shared memory, so that persistent workers see it change.
        self.epoch = multiprocessing.Value("i", 0, lock=False)

    def __len__(self):
        return len(self.costs_ms)

    def offline(self, key):
        time.sleep(self.costs_ms[key] / 1e3)
        return np.full(64, key, np.float32), np.zeros(64, np.uint8)

    def online(self, key, image, label):
        time.sleep(online_cost(self.options, self.epoch.value, key) / 1e3)
        return image, label, key

    def __getitem__(self, key):
        return self.online(key, *self.offline(key))


class OneBlock(Slept):
    """The offline part is marked as deterministic, so that a loader with a cache caches it."""

    offline = drapps.deterministic(key=lambda self, key: (key, self.costs_ms[key]))(Slept.offline)


# --- loaders of the accelerators ---


class OwnLoaders:
    """A loader for each accelerator, with its share of the workers and of the samples."""

    def __init__(self, make, data, arguments, n):
        own = {**arguments, "num_workers": arguments["num_workers"] // n}
        self._samplers = [DistributedSampler(data, n, rank, seed=1) for rank in range(n)]
        self._loaders = [make(data, sampler=sampler, **own) for sampler in self._samplers]

    def queues(self, epoch):
        for sampler in self._samplers:
            sampler.set_epoch(epoch)
        return [iter(loader) for loader in self._loaders]


class OneLoader:
    """One loader for all accelerators."""

    def __init__(self, make, data, arguments, n, name):
        self._loader, self._n, self._name = make(data, shuffle=True, **arguments), n, name

    def queues(self, epoch):
        return [shared(iter(self._loader), self._name)] * self._n


# --- training ---


def step_ms(options):
    """Return the step at which the accelerators are as fast as workers with preprocessed volumes."""
    costs = online_costs(options)
    return sum(costs) / len(costs) * options["batch"] * options["consumers"] / options["workers"]


def train(feed, data, options):
    """Train; return the seconds in steps of all accelerators.  Checks that each sample comes once per epoch."""
    held = 0.0
    for epoch in range(options["epochs"]):
        data.epoch.value = epoch
        threads, _ = drain_each(feed.queues(epoch), step_ms(options) / 1e3, Lockstep(options["consumers"]))
        tally_of(threads, len(data)).check()
        held += sum(thread.held for thread in threads)
    return held


def run(make, case, options):
    arguments, began, offline = dict(case.arguments), time.perf_counter(), 0.0
    way, own = arguments.pop("way"), arguments.pop("own")
    data = OneBlock(options) if way == "one block" else Slept(options)
    with tempfile.TemporaryDirectory(prefix="drapps-bench-") as folder:
        trained = data
        if way == "one block":
            arguments["cache"] = os.path.join(folder, "cache")
        else:
            for _ in make(OfflinePass(data, folder), num_workers=options["workers"]):
                pass
            offline, trained = time.perf_counter() - began, AfterOffline(data, folder)
        feed = (OwnLoaders(make, trained, arguments, options["consumers"]) if own else
                OneLoader(make, trained, arguments, options["consumers"], case.loader))
        held = train(feed, data, options)
        wall = time.perf_counter() - began
        del feed
    return {"offline_s": offline, "wall_s": wall, "usage": held / (wall * options["consumers"])}


def cases(options):
    arguments = {"batch_size": options["batch"], "num_workers": options["workers"], "persistent_workers": True,
                 "way": "offline first", "own": False}
    first = "torch, offline first, a loader each"
    return [Case(first, "torch", {**arguments, "own": True}),
            Case("torch, offline first, one loader", "torch", arguments, first),
            Case("drapps, offline first, one loader, in_order=False", "drapps", {**arguments, "in_order": False},
                 first),
            Case("drapps, one block, one loader, in_order=False", "drapps",
                 {**arguments, "in_order": False, "way": "one block"}, first)]


def least_s(options):
    """Return the seconds with no worker idle while an epoch has work left: all work spread evenly,
    and each last step."""
    work = sum(offline_costs(options)) + sum(online_costs(options))
    return (work / options["workers"] + options["epochs"] * step_ms(options)) / 1e3


def notes(result):
    options, found = result["options"], {entry["case"]: entry["figures"]["wall_s"] for entry in result["cases"]}
    lines = [f"Accelerators emulated, in lockstep, steps of {step_ms(options):.0f} ms; costs are slept, not computed.  "
             "The offline pass has all workers.",
             f"All work spread evenly over the workers, and the last step of each epoch: {least_s(options):.1f} s."]
    before, ours = (found.get(case.name) for case in (cases(options)[0], cases(options)[-1]))
    if before and ours:
        lines.append(f"Time of drapps's one block over the loader each: {ours['median'] / before['median']:.2f}.")
    return lines


WORKLOAD = Workload(
    title="3D-UNet's published costs and comparison, eight emulated accelerators in lockstep",
    options={"volumes": 160, "epochs": 5, "scale": 0.1, "batch": 2, "workers": 16, "consumers": 8},
    quick={"volumes": 12, "epochs": 2, "scale": 0.005, "workers": 3, "consumers": 3},
    cases=cases, run=run, notes=notes, ratio="usage",
    columns=(Column("offline s", "offline_s", 1), Column("wall s", "wall_s", 1), Column("usage", "usage", 3)),
)
