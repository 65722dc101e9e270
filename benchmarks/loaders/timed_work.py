"""Data sets whose samples take a known time: calibrated CPU work, or sleep."""

import hashlib
import random
import time

import numpy as np
from torch.utils.data import Dataset

BLOCK = bytes(4096)
CALIBRATION_SECONDS = 0.1


def work(rounds):
    """Do CPU work without memory traffic or locks: hash a block `rounds` times."""
    for _ in range(rounds):
        hashlib.sha256(BLOCK).digest()


def rounds_per_ms():
    """Return the number of rounds of `work` per millisecond on an idle CPU: the best of five trials."""
    best = 0.0
    for _ in range(5):
        rounds, began = 0, time.perf_counter()
        while time.perf_counter() - began < CALIBRATION_SECONDS:
            work(100)
            rounds += 100
        best = max(best, rounds / (time.perf_counter() - began) / 1e3)
    return best


class TimedWork(Dataset):
    """Sample k takes costs_ms[k]; it is (array of `floats` numbers k, k).  speed: rounds per ms, None to sleep."""

    def __init__(self, costs_ms, speed, floats=64):
        self.costs_ms, self.speed, self.floats = costs_ms, speed, floats

    def __len__(self):
        return len(self.costs_ms)

    def __getitem__(self, key):
        if self.speed is None:
            time.sleep(self.costs_ms[key] / 1e3)
        else:
            work(round(self.costs_ms[key] * self.speed))
        return np.full(self.floats, key, np.float32), key


def skewed_costs(n, fast_ms, slow_times=20, every=10, seed=1):
    """Return costs in which one sample in `every`, at random places, costs `slow_times` as much as the others."""
    costs = [fast_ms] * n
    for key in random.Random(seed).sample(range(n), n // every):
        costs[key] = fast_ms * slow_times
    return costs


def calibrated(options, folder):
    """A Workload.prepare: measures the speed of this machine if the options ask for CPU work."""
    return {"speed": rounds_per_ms() if options["work"] == "cpu" else None}
