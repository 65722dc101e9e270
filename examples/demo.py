"""Shows the gain of one changed import: torch's DataLoader and drapps.DataLoader over the same data set and transforms.

    python examples/demo.py [--trainings N] [--data FOLDER]

1. each loader alone: samples per second
2. with the training step of a fast accelerator (emulated: the training loop sleeps that long)
3. a small network trained on this CPU, several times with each loader: speed, and accuracy with its interval

Finally it compares the pixels, prints the last decision of drapps' scheduler, and writes a report of the second part as
an HTML page.  It is a demonstration, not a benchmark: `make bench` measures with care.
"""

import argparse
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

# Spinning threads of OpenMP would take CPU time from loading.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import drapps
from demo_data import make_demo_data
from drapps.report import write_report
from vision import import_torchvision

SIZE = 96
BATCH = 64
STEP = 0.020  # seconds per batch: 3200 samples per second
ALONE_SECONDS = STEP_SECONDS = 5.0
EPOCHS = 8  # of a training run
# T quantiles for 95 % intervals, by number of values.
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
CPUS = len(os.sched_getaffinity(0))


@dataclass
class Result:
    """The results of one loader."""

    name: str
    alone: float = 0.0  # samples a second
    stepping: float = 0.0
    idle: float = 0.0  # share of the time in which the emulated accelerator waited
    training: float = 0.0
    accuracies: list = field(default_factory=list)


class Side:
    """One of the two loaders, over the same data sets."""

    def __init__(self, name, make, train, val):
        self.make, self.train, self.val = make, train, val
        self.result = Result(name)

    def training(self, seed=0, **options):
        """Return a loader of the training set."""
        return self.make(self.train, BATCH, shuffle=True, num_workers=CPUS, persistent_workers=True, drop_last=True,
                         generator=torch.Generator().manual_seed(seed), **options)  # fmt: skip


def data_sets(data):
    """Return torchvision's ImageFolders with the usual transforms, for training and validation."""
    torchvision = import_torchvision()
    t = torchvision.transforms
    finish = [t.ToTensor(), t.Normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD)]
    augment = t.Compose([t.RandomResizedCrop(SIZE, scale=(0.3, 1)), t.RandomHorizontalFlip(), *finish])
    plain = t.Compose([t.Resize(SIZE + 16), t.CenterCrop(SIZE), *finish])
    return torchvision.datasets.ImageFolder(data / "train", augment), torchvision.datasets.ImageFolder(
        data / "val", plain
    )


def pace(loader, step, seconds):
    """Return (samples per second, share of the time spent waiting) over some seconds of passes."""
    for _ in loader:  # a pass to warm up
        pass
    samples, waited, begun = 0, 0.0, time.perf_counter()
    while (asked := time.perf_counter()) < begun + seconds:
        for images, _labels in loader:
            waited += time.perf_counter() - asked
            samples += len(images)
            step()
            asked = time.perf_counter()
            if asked > begun + seconds:
                break
    passed = time.perf_counter() - begun
    return samples / passed, waited / passed


def make_model(n_classes, seed):
    torch.manual_seed(seed)
    layers, channels = [], 3
    for wider in (16, 32, 64, 96):
        layers += [nn.Conv2d(channels, wider, 3, stride=2, padding=1), nn.BatchNorm2d(wider), nn.ReLU()]
        channels = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, n_classes))


def accuracy(model, batches):
    """Return the share of correct predictions."""
    model.eval()
    with torch.no_grad():
        right = torch.cat([model(images).argmax(1) == labels for images, labels in batches])
    return right.float().mean().item()


def train(loader, batches, n_classes, seed):
    """Train a new model; return (samples, seconds, accuracy).  Validation is not timed."""
    model = make_model(n_classes, seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=EPOCHS * len(loader))
    samples, begun = 0, time.perf_counter()
    for _ in range(EPOCHS):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            samples += len(labels)
    return samples, time.perf_counter() - begun, accuracy(model, batches)


def train_by_turns(sides, trainings, n_classes, said):
    """Train with both loaders alternately, with the same seeds, so that a busy phase of the machine affects both."""
    batches = list(sides[0].make(sides[0].val, BATCH, num_workers=CPUS))  # the same for all models
    totals = {side.result.name: [0, 0.0] for side in sides}
    for seed in range(trainings):
        for side in sides:
            said(f"training {seed + 1} of {trainings} with {side.result.name}")
            samples, seconds, right = train(side.training(seed), batches, n_classes, seed)
            totals[side.result.name][0] += samples
            totals[side.result.name][1] += seconds
            side.result.accuracies.append(right)
    for side in sides:
        samples, seconds = totals[side.result.name]
        side.result.training = samples / seconds
    return sum(len(labels) for _, labels in batches)


def largest_difference(sides):
    """Return the largest difference between the validation pixels of the two loaders."""
    left, right = (side.make(side.val, BATCH, num_workers=CPUS) for side in sides)
    return max((a - b).abs().max().item() for (a, _), (b, _) in zip(left, right, strict=True))


def mean(values):
    return sum(values) / len(values)


def show(console, results, n_val):
    table = Table(title=f"samples a second, {CPUS} CPUs, no GPU")
    for heading in ("", *(result.name for result in results), "ratio"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)

    def row(what, numbers, words=None):
        words = words or [f"{number:.0f}" for number in numbers]
        table.add_row(what, *words, f"{numbers[1] / numbers[0]:.2f} x")

    row("loader alone", [result.alone for result in results])
    row(f"step of {STEP * 1e3:.0f} ms, emulated", [result.stepping for result in results])
    table.add_row("  accelerator idle", *(f"{result.idle:.0%}" for result in results), "")
    row("small network on this CPU", [result.training for result in results])
    table.add_row("  accuracy", *(f"{mean(result.accuracies):.1%}" for result in results), "")
    console.print(table)
    gains = [right - left for left, right in zip(*(result.accuracies for result in results), strict=True)]
    if len(gains) in STUDENT:
        spread = math.sqrt(sum((gain - mean(gains)) ** 2 for gain in gains) / (len(gains) - 1) / len(gains))
        half = STUDENT[len(gains)] * spread
        console.print(f"accuracy of drapps minus torch: {100 * mean(gains):+.1f} ± {100 * half:.1f} points (95 % "
                      f"interval, {len(gains)} training runs each, {n_val} validation images)",
                      soft_wrap=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainings", type=int, default=8, help="training runs with each loader (default: 8)")
    parser.add_argument("--data", type=Path, default=Path("build/demo-data"),
                        help="folder of the images, which are made there if missing")
    arguments = parser.parse_args()

    console = Console()
    with console.status("making the image set"):
        data = make_demo_data(arguments.data)
    sets = data_sets(data)
    sides = [Side("torch", torch.utils.data.DataLoader, *sets), Side("drapps", drapps.DataLoader, *sets)]
    trace = arguments.data / "demo.drtrace"
    trace.unlink(missing_ok=True)
    # Half of the CPUs train; each loader may use all CPUs.
    torch.set_num_threads(max(1, CPUS // 2))
    with console.status("") as status:
        for side in sides:
            status.update(f"{side.result.name} alone")
            side.result.alone, _ = pace(side.training(), lambda: None, ALONE_SECONDS)
        for side in sides:
            status.update(f"{side.result.name} with an emulated accelerator")
            loader = side.training(**({"trace": trace} if side is sides[1] else {}))
            side.result.stepping, side.result.idle = pace(loader, lambda: time.sleep(STEP), STEP_SECONDS)
        decisions = loader.decisions()
        loader.close()
        n_val = train_by_turns(sides, arguments.trainings, len(sets[0].classes), status.update)
        difference = largest_difference(sides)
    show(console, [side.result for side in sides], n_val)
    console.print(f"largest difference between their validation pixels: {difference:.2g}")
    for decision in decisions[-1:]:
        console.print(f"the scheduler's last decision: {decision.reason}", soft_wrap=True)
    report = arguments.data / "demo.html"
    write_report([("demo", drapps.trace.read(trace))], report)
    console.print(f"report of the emulated run: {report}", soft_wrap=True)


if __name__ == "__main__":
    main()
