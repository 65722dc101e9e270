"""Samples of a few hundred bytes: the overhead of a loader per sample and per batch."""

import time

import numpy as np
from torch.utils.data import Dataset

from ..case import Case, Column, Workload
from ..consumer import Tally, drain, take_keys, whole_digest


class Rows(Dataset):
    """Rows of one array, each with its key."""

    def __init__(self, n, size):
        self.rows = np.random.default_rng(0).integers(0, 256, (n, size), dtype=np.uint8)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, key):
        return self.rows[key], key


def cases(options):
    made = []
    for batch in options["batches"]:
        arguments = {"batch_size": batch, "shuffle": True, "num_workers": options["workers"],
                     "persistent_workers": True, "drop_last": False}
        made += [Case(f"torch, batches of {batch}", "torch", arguments),
                 Case(f"drapps, batches of {batch}", "drapps", arguments, f"torch, batches of {batch}")]
    return made


def run(make, case, options):
    data = Rows(options["samples"], options["bytes"])
    loader = make(data, **case.arguments)
    digest = whole_digest(loader, len(data))  # the first epoch also starts the workers
    tally = Tally(len(data))
    began = time.perf_counter()
    batches = sum(len(drain(loader, 0, take_keys(tally)).waits) for _ in range(options["epochs"]))
    seconds = time.perf_counter() - began
    tally.check(options["epochs"])
    return {"batches_per_s": batches / seconds, "us_per_sample": seconds * 1e6 / (len(data) * options["epochs"]),
            "digest": digest}


WORKLOAD = Workload(
    title="Tiny samples, epochs after the first",
    options={"samples": 40000, "bytes": 256, "batches": [16, 64], "workers": 2, "epochs": 3},
    quick={"samples": 256, "epochs": 1},
    cases=cases, run=run, ratio="batches_per_s",
    columns=(Column("batches/s", "batches_per_s"), Column("µs per sample", "us_per_sample", 1)),
)
