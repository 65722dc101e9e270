"""Offline preprocessing followed by training, or both as one block: time to the first batch, and total time."""

import os
import tempfile
import time

import drapps

from ..case import Case, Column, Workload
from ..consumer import Tally, hold
from ..volume_sets import AfterOffline, OfflinePass, Volumes, make_set, write_files


def identity(volumes, key):
    """Return what decides the result of the offline ops, which does not include the epoch."""
    return volumes.images[key], volumes.labels[key], volumes.patch


class OneBlock(Volumes):
    """The offline part is marked as deterministic, so that a loader with a cache caches it."""

    offline = drapps.deterministic(key=identity)(Volumes.offline)


def train(loaders, n, step_s):
    """Run an epoch of each loader; return (seconds to the first batch, total seconds) from the call on."""
    began, first = time.perf_counter(), None
    for loader in loaders:
        tally = Tally(n)
        for _, _, keys in loader:
            first = first or time.perf_counter() - began
            tally.add(keys)
            hold(step_s)
        tally.check()
    return first, time.perf_counter() - began


def epochs_of(make, data, volumes, arguments, options):
    """Yield a new loader for each epoch, as random choices depend on the epoch."""
    for epoch in range(options["epochs"]):
        volumes.epoch = epoch
        yield make(data, **arguments)


def offline_first(make, volumes, arguments, options, folder):
    """Write the results of the offline ops to files, then train on these."""
    began = time.perf_counter()
    for _ in make(OfflinePass(volumes, folder), num_workers=arguments["num_workers"]):
        pass
    offline = time.perf_counter() - began
    loaders = epochs_of(make, AfterOffline(volumes, folder), volumes, arguments, options)
    first, total = train(loaders, len(volumes), options["step_ms"] / 1e3)
    return {"offline_s": offline, "first_s": offline + first, "total_s": offline + total}


def run(make, case, options):
    arguments = dict(case.arguments)
    way = arguments.pop("way")
    volumes = make_set(options, OneBlock if way == "one block" else Volumes)
    with tempfile.TemporaryDirectory(prefix="drapps-bench-") as folder:
        if way == "offline first":
            return offline_first(make, volumes, arguments, options, folder)
        if way == "one block":
            arguments["cache"] = os.path.join(folder, "cache")
        loaders = epochs_of(make, volumes, volumes, arguments, options)
        first, total = train(loaders, len(volumes), options["step_ms"] / 1e3)
    return {"first_s": first, "total_s": total}


def cases(options):
    arguments = {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"]}
    before = "torch, offline first"
    return [Case(before, "torch", {**arguments, "way": "offline first"}),
            Case("torch, everything each epoch", "torch", {**arguments, "way": "each epoch"}, before),
            Case("drapps, everything each epoch", "drapps", {**arguments, "way": "each epoch"}, before),
            Case("drapps, one block", "drapps", {**arguments, "way": "one block"}, before),
            Case("drapps, one block, in_order=False", "drapps", {**arguments, "way": "one block", "in_order": False},
                 before)]


def notes(result):
    found = {entry["case"]: entry["figures"] for entry in result["cases"]}
    offline = found.get("torch, offline first", {}).get("offline_s")
    shares = {case: figures["first_s"]["median"] / offline["median"] for case, figures in found.items()
              if offline and "one block" in case and figures["first_s"]}
    words = ", ".join(f"{case.removeprefix('drapps, ')} {share:.3f}" for case, share in shares.items())
    lines = ["Accelerator emulated.  The volumes of the first batch are random in each run."]
    return lines + ([f"First batch as a share of the offline phase: {words}."] if words else [])


WORKLOAD = Workload(
    title="3D-UNet's offline and online ops",
    options={"data": None, "volumes": 168, "scale": 0.25, "crop": 32, "batch": 2, "workers": 2, "epochs": 5,
             "step_ms": 40.0},
    quick={"volumes": 6, "scale": 0.05, "crop": 8, "epochs": 2, "step_ms": 1.0},
    cases=cases, run=run, prepare=write_files, notes=notes, ratio="total_s", partial=("offline_s",),
    columns=(Column("offline s", "offline_s", 1), Column("first batch s", "first_s", 2),
             Column("total s", "total_s", 1)),
)
