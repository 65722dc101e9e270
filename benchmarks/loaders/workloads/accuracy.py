"""Does the order of completion change the accuracy?  A small CNN, trained in order and out of order."""

import math
import statistics

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

from ..case import Case, Column, Workload
from ..consumer import Tally
from ..timed_work import TimedWork, skewed_costs

CLASSES = 8
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 8: 2.365, 10: 2.262}  # Student's t, by number of pairs


class Gratings(Dataset):
    """Stripes in one of eight directions under strong noise; one sample in ten is slow."""

    def __init__(self, n, seed, slow_ms):
        self.labels = np.arange(n) % CLASSES
        rng = np.random.default_rng(seed)
        phase, noise = rng.uniform(0, 6.3, n), rng.standard_normal((n, 16, 16))
        y, x = np.mgrid[:16, :16]
        angle = (self.labels * math.pi / CLASSES)[:, None, None]
        waves = np.sin((np.cos(angle) * x + np.sin(angle) * y) * 0.9 + phase[:, None, None])
        self.images = (waves + 1.6 * noise).astype(np.float32)[:, None]
        self.costs = TimedWork(skewed_costs(n, slow_ms / 20), None, floats=1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, key):
        self.costs[key]
        return self.images[key], int(self.labels[key]), key


def network():
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                         nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, CLASSES))


def displacement(keys, drawn):
    """Return the mean distance between a sample's positions in the drawn order and in the order of delivery."""
    place = {key: i for i, key in enumerate(drawn)}
    return sum(abs(place[key] - i) for i, key in enumerate(keys)) / len(keys)


class Recorded(torch.utils.data.RandomSampler):
    """Keeps the order it drew."""

    def __iter__(self):
        self.drawn = list(super().__iter__())
        return iter(self.drawn)


def train(make, case, options, seed):
    """Train once; return (accuracy, mean displacement).  Checks that each sample comes once per epoch."""
    torch.manual_seed(seed)
    data, test = Gratings(options["samples"], 0, options["slow_ms"]), Gratings(options["samples"], 1, 0)
    sampler = Recorded(data)
    loader = make(data, sampler=sampler, **case.arguments)
    model, moved = network(), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(options["epochs"]):
        tally, came = Tally(len(data)), []
        for images, labels, keys in loader:
            tally.add(keys)
            came += keys.tolist()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        tally.check()
        moved += displacement(came, sampler.drawn) / options["epochs"]
    with torch.no_grad():
        right = model(torch.from_numpy(test.images)).argmax(1) == torch.from_numpy(test.labels)
    return float(right.float().mean()), moved


def run(make, case, options):
    torch.set_num_threads(1)
    trained = [train(make, case, options, seed) for seed in range(options["seeds"])]
    return {"accuracy": statistics.mean(accuracy for accuracy, _ in trained),
            "accuracies": [accuracy for accuracy, _ in trained],
            "moved": statistics.mean(moved for _, moved in trained)}


def cases(options):
    arguments = {"batch_size": options["batch"], "num_workers": options["workers"]}
    return [Case("torch, in order", "torch", arguments),
            Case("drapps, in order", "drapps", {**arguments, "in_order": True}, "torch, in order"),
            Case("drapps, in_order=False", "drapps", {**arguments, "in_order": False}, "torch, in order")]


def interval(pairs):
    """Return mean and half width of the 95 % confidence interval of paired differences."""
    mean = statistics.mean(pairs)
    t = T_95.get(len(pairs), 1.96)
    return mean, t * statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.inf


def notes(result):
    runs = {entry["case"]: entry["runs"] for entry in result["cases"]}
    names = ("drapps, in order", "drapps, in_order=False")
    if not all(runs.get(name) for name in names):
        return []
    ordered, reordered = (runs[name][0]["accuracies"] for name in names)
    mean, half = interval([b - a for a, b in zip(ordered, reordered)])
    inside = "inside" if abs(mean) <= half else "OUTSIDE"
    return [f"Accuracy out of order minus in order, {len(ordered)} seeds: {mean:+.4f}, 95 % interval "
            f"[{mean - half:+.4f}, {mean + half:+.4f}]: no difference is {inside} it.",
            "Displacement: mean distance, in samples, between the drawn order and the order of delivery."]


WORKLOAD = Workload(
    title="A small CNN on noisy stripes, trained in order and out of order",
    options={"samples": 2048, "epochs": 6, "batch": 32, "workers": 2, "seeds": 5, "slow_ms": 10},
    quick={"samples": 128, "epochs": 1, "seeds": 2},
    cases=cases, run=run, notes=notes,
    columns=(Column("accuracy", "accuracy", 4), Column("displacement", "moved", 1)),
)
