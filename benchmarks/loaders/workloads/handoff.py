"""Samples of 10 KB: the gain of a second worker if samples are transferred one by one, and batch by batch."""

import multiprocessing

import numpy as np
from torch.utils.data import Dataset, default_collate

from ..case import Case, Column, Workload
from ..consumer import Tally, drain, fingerprint

COMPARED = 2  # number of batches whose bytes are checked, which takes little time


class SmallRecords(Dataset):
    """Converts 10 KB of bytes to numbers, with `passes` rounds of arithmetic each."""

    def __init__(self, n, size, passes):
        self.rows = np.random.default_rng(0).integers(0, 256, (n, size), dtype=np.uint8)
        self.passes = passes

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, key):
        row = self.rows[key].astype(np.float32)
        for _ in range(self.passes):
            row = np.sqrt(row * row + np.float32(1))
        return row.astype(np.uint8), key


class OneByOne:
    """The naive way: a pool of processes with a task and a result for each sample."""

    data = None  # inherited by forked processes, so that a task is only a key

    def __init__(self, data, batch_size, num_workers):
        OneByOne.data, self.batch_size, self.num_workers = data, batch_size, num_workers

    @staticmethod
    def make(key):
        return OneByOne.data[key]

    def __iter__(self):
        with multiprocessing.get_context("fork").Pool(self.num_workers) as pool:
            samples = []
            for sample in pool.imap(OneByOne.make, range(len(OneByOne.data)), chunksize=1):
                samples.append(sample)
                if len(samples) == self.batch_size:
                    yield default_collate(samples)
                    samples = []
            pool.close()
            pool.join()


def cases(options):
    made = []
    for loader, words in (("naive", "one by one"), ("torch", "torch"), ("drapps", "drapps")):
        for workers in (1, 2):
            arguments = {"batch_size": options["batch"], "num_workers": workers}
            made.append(Case(f"{words}, {workers}", loader, arguments, f"{words}, 1" if workers > 1 else None))
    return made


def run(make, case, options):
    data = SmallRecords(options["samples"], options["bytes"], options["passes"])
    loader = (make or OneByOne)(data, **case.arguments)
    tally, digests = Tally(len(data)), []

    def take(batch):
        tally.add(batch[1])
        if len(digests) < COMPARED:
            digests.append(fingerprint(batch[1], batch[0]))

    seen = drain(loader, 0, take)
    return {"samples_per_s": tally.check() / seen.wall, "digest": sum(digests) % (1 << 61)}


WORKLOAD = Workload(
    title="Small samples, transferred in two ways",
    options={"samples": 32000, "bytes": 10240, "batch": 64, "passes": 30},
    quick={"samples": 256},
    cases=cases, run=run, ratio="samples_per_s", columns=(Column("samples/s", "samples_per_s"),),
    notes=lambda result: ["The ratio is the gain of a second worker; the consumer shares the same CPUs."],
)
