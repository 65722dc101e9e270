"""A data set that is a long list of Python objects: the memory that workers add by reading it.

Workers share it after a fork until they write to it, and Python writes to each object that it reads: the reference
count.
"""

import os

import torch
from torch.utils.data import Dataset

from drapps.bench import process
from drapps.bench.child import Monitor
from ..case import Column, Workload, both
from ..consumer import Tally, drain, take_keys, whole_digest


class Records(Dataset):
    """Names and labels, a common form of annotations."""

    def __init__(self, n):
        self.records = [{"name": f"images/{k:09d}.jpg", "label": float(k)} for k in range(n)]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, key):
        record = self.records[key]
        return torch.tensor([len(record["name"]), record["label"]]), key


def arguments(options):
    return {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"],
            "persistent_workers": True}


def run(make, case, options):
    data = Records(options["samples"])
    base = process.pss_bytes(os.getpid())
    monitor = Monitor()
    loader, tally = make(data, **case.arguments), Tally(len(data))
    digest = whole_digest(loader, len(data))
    for _ in range(options["epochs"] - 1):
        drain(loader, 0, take_keys(tally))
    tally.check(options["epochs"] - 1)
    return {"pss_above_mb": (monitor.stop() - base) / 1e6, "digest": digest}


WORKLOAD = Workload(
    title="A list of Python objects as a data set",
    options={"samples": 400_000, "batch": 256, "workers": 4, "epochs": 3},
    quick={"samples": 512, "batch": 64, "workers": 2, "epochs": 2},
    cases=lambda options: both(arguments(options)), run=run, ratio="pss_above_mb",
    columns=(Column("memory MB", "pss_above_mb"),),
    notes=lambda result: ["Memory: peak proportional set size of the process tree, above the process that has made the "
                          "data set and not begun to load it."],
)
