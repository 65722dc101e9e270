"""kill -9 of a random worker every few seconds: each sample must still be delivered exactly once per epoch."""

import os
import random
import signal
import threading
import time
import warnings

from torch.utils.data import Dataset

from ..case import Case, Column, Workload
from ..consumer import Tally
from ..timed_work import TimedWork


class Signed(Dataset):
    """Samples that have the id of the process that made them."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        return (*self.data[key], os.getpid())


class Killer(threading.Thread):
    """Every `every_s` seconds kills one of the processes that recently made a sample."""

    def __init__(self, every_s, seed):
        super().__init__(daemon=True)
        self.every_s, self.rng = every_s, random.Random(seed)
        self.makers, self.kills, self.over = [], 0, threading.Event()

    def saw(self, pids):
        self.makers = [pid for pid in dict.fromkeys(pids.tolist()) if pid != os.getpid()]

    def run(self):
        while not self.over.wait(self.every_s):
            if self.makers:
                try:
                    os.kill(self.rng.choice(self.makers), signal.SIGKILL)
                    self.kills += 1
                except ProcessLookupError:
                    pass  # it was replaced meanwhile


def run(make, case, options):
    costs = [options["sample_ms"]] * options["samples"]
    loader = make(Signed(TimedWork(costs, None)), **case.arguments)
    killer = Killer(options["every_s"], seed=1)
    epochs, samples, began = 0, 0, time.perf_counter()
    killer.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each death is a warning; here they are counted
        while epochs < options["epochs"] or time.perf_counter() - began < options["seconds"]:
            tally = Tally(len(costs))
            for _, keys, pids in loader:
                tally.add(keys)
                killer.saw(pids)
            samples += tally.check()
            epochs += 1
    seconds = time.perf_counter() - began
    killer.over.set()
    return {"kills": killer.kills, "epochs": epochs, "samples": samples, "samples_per_s": samples / seconds}


def cases(options):
    arguments = {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"],
                 "persistent_workers": True}
    return [Case("drapps, in order", "drapps", {**arguments, "in_order": True}),
            Case("drapps, in_order=False", "drapps", {**arguments, "in_order": False}),
            Case("torch", "torch", arguments)]


WORKLOAD = Workload(
    title="A random worker is killed again and again",
    options={"seconds": 60, "every_s": 2.0, "epochs": 3, "samples": 2000, "batch": 16, "workers": 2, "sample_ms": 5},
    quick={"seconds": 1, "every_s": 0.4, "epochs": 2, "samples": 100},
    cases=cases, run=run,
    columns=(Column("kills", "kills"), Column("epochs", "epochs"), Column("samples", "samples"),
             Column("samples/s", "samples_per_s")),
)
