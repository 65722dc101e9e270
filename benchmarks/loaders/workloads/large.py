"""Samples of 10 MB: throughput of arrays, and memory of the process tree."""

import os
import time

import numpy as np
from torch.utils.data import Dataset

from drapps.bench import process
from drapps.bench.child import Monitor
from drapps.bench.workload import read_batch
from ..case import Column, Workload, both
from ..consumer import Tally, drain, whole_digest


class Arrays(Dataset):
    """Sample k is an array of `floats` numbers k, made on access."""

    def __init__(self, n, floats):
        self.n, self.floats = n, floats

    def __len__(self):
        return self.n

    def __getitem__(self, key):
        return np.full(self.floats, key, np.float32), key


def arguments(options):
    return {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"],
            "persistent_workers": True}


def run(make, case, options):
    base = options.get("base_pss") or process.pss_bytes(os.getpid())
    monitor = Monitor()
    data = Arrays(options["samples"], int(options["megabytes"] * 250_000))
    loader = make(data, **case.arguments)
    tally = Tally(len(data))

    def take(batch):
        arrays, keys = batch
        tally.add(keys)
        read_batch(arrays.numpy())

    drain(loader, 0, take)  # the first epoch: starts the workers
    began = time.perf_counter()
    batches = sum(len(drain(loader, 0, take).waits) for _ in range(options["epochs"]))
    seconds = time.perf_counter() - began
    peak = monitor.stop()
    tally.check(options["epochs"] + 1)
    return {"batches_per_s": batches / seconds, "pss_above_mb": (peak - base) / 1e6,
            "digest": whole_digest(loader, len(data))}


def notes(result):
    found = {entry["case"]: entry["figures"]["pss_above_mb"] for entry in result["cases"]}
    lines = ["Memory: peak proportional set size of the process tree, above the same process when it had imported "
             "torch alone."]
    if found.get("torch") and found.get("drapps"):
        lines.append(f"Memory of drapps over torch's: {found['drapps']['median'] / found['torch']['median']:.2f}.")
    return lines


WORKLOAD = Workload(
    title="Large samples, epochs after the first",
    options={"samples": 160, "megabytes": 10, "batch": 4, "workers": 2, "epochs": 3},
    quick={"samples": 8, "megabytes": 1, "epochs": 1},
    cases=lambda options: both(arguments(options)), run=run, notes=notes, ratio="batches_per_s",
    columns=(Column("batches/s", "batches_per_s", 1), Column("memory MB", "pss_above_mb")),
)
