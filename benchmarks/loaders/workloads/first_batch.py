"""From the loader's construction to its first batch, by the start method of the workers."""

import time

import numpy as np
from torch.utils.data import Dataset

from ..case import Case, Column, Workload
from ..consumer import fingerprint


class Table(Dataset):
    """A table in memory, like many data sets; it must be transferred to the workers."""

    def __init__(self, n, floats):
        self.rows = np.random.default_rng(0).standard_normal((n, floats), dtype=np.float32)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, key):
        return self.rows[key], key


def cases(options):
    made = []
    for method in options["methods"]:
        arguments = {"batch_size": options["batch"], "num_workers": options["workers"],
                     **({} if method == "default" else {"multiprocessing_context": method})}
        made += [Case(f"torch, {method}", "torch", arguments),
                 Case(f"drapps, {method}", "drapps", arguments, f"torch, {method}")]
    return made


def run(make, case, options):
    data = Table(options["samples"], options["floats"])
    began = time.perf_counter()
    batches = iter(make(data, **case.arguments))
    rows, keys = next(batches)
    ms = (time.perf_counter() - began) * 1e3
    return {"first_batch_ms": ms, "digest": fingerprint(keys, rows)}


WORKLOAD = Workload(
    title="First batch after construction; torch and the loader are imported before",
    options={"workers": 4, "batch": 32, "samples": 20000, "floats": 128, "methods": ["default", "spawn"]},
    quick={"workers": 1, "samples": 200, "methods": ["default"]},
    cases=cases, run=run, ratio="first_batch_ms", columns=(Column("first batch ms", "first_batch_ms"),),
    counted=False,
    notes=lambda result: ["The data set's class is in an installed module; default is the platform's start method."],
)
