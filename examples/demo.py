"""Trains a small convolutional network twice, on the same images with the same seeds: once fed by torch's DataLoader with
torchvision, once by drapps.  Prints samples per second, the time that training waited for data, and the accuracy.

    python examples/demo.py [--epochs N] [--data FOLDER]

It shows what to expect, it is no benchmark: the two run one after the other, once.  `make bench` measures with care.
"""

import argparse
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

# Threads that wait for each other by spinning would take the CPU from those that load data.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import nn

import drapps
from demo_data import make_demo_data
from vision import import_torchvision

SIZE = 96
BATCH = 64
SEED = 0
CPUS = len(os.sched_getaffinity(0))


@dataclass
class Feed:
    """A way to get batches: an iterable for training, one for validation, and what begins an epoch."""
    name: str
    train: object
    val: object
    begin_epoch: object = lambda epoch: None


@dataclass
class Result:
    name: str
    samples: int
    seconds: float
    waited: float
    accuracy: float
    accuracy_error: float


def torch_feed(data, workers):
    """What people write today, with worker processes that stay between epochs."""
    torchvision = import_torchvision()
    t = torchvision.transforms
    finish = [t.ToTensor(), t.Normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD)]
    augment = t.Compose([t.RandomResizedCrop(SIZE), t.RandomHorizontalFlip(), *finish])
    plain = t.Compose([t.Resize(SIZE + 16), t.CenterCrop(SIZE), *finish])
    folder = torchvision.datasets.ImageFolder
    options = dict(batch_size=BATCH, num_workers=workers, persistent_workers=True)
    return Feed("torch + torchvision",
                torch.utils.data.DataLoader(folder(data / "train", augment), shuffle=True,
                                            generator=torch.Generator().manual_seed(SEED), **options),
                torch.utils.data.DataLoader(folder(data / "val", plain), **options))


def drapps_feed(data):
    """The same pipeline, said natively."""
    train = (drapps.read(data / "train").decode().random_resized_crop(SIZE).random_horizontal_flip()
             .normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
             .loader(batch_size=BATCH, shuffle=True, seed=SEED))
    val = (drapps.read(data / "val").decode().resize(SIZE + 16).center_crop(SIZE)
           .normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
           .loader(batch_size=BATCH))
    return Feed("drapps", train, val, train.set_epoch)


def make_model(n_classes):
    torch.manual_seed(SEED)
    layers, channels = [], 3
    for wider in (16, 32, 64, 96):
        layers += [nn.Conv2d(channels, wider, 3, stride=2, padding=1), nn.BatchNorm2d(wider), nn.ReLU()]
        channels = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, n_classes))


class Waiting:
    """Iterates like `source` and adds up the time that passed inside it."""

    def __init__(self, source):
        self.source, self.seconds = source, 0.0

    def __iter__(self):
        start = time.perf_counter()
        for batch in self.source:
            self.seconds += time.perf_counter() - start
            yield batch
            start = time.perf_counter()
        self.seconds += time.perf_counter() - start


def accuracy(model, batches):
    """The share of right answers, and its standard error for so many images."""
    model.eval()
    right = total = 0
    with torch.no_grad():
        for images, labels in batches:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
    share = right / total
    return share, math.sqrt(share * (1 - share) / total)


def train(feed, n_classes, epochs, step):
    """Trains a new model; `step(n)` is told each batch's size.  Validation is outside the times."""
    model = make_model(n_classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=epochs * len(feed.train))
    batches, samples, start = Waiting(feed.train), 0, time.perf_counter()
    for epoch in range(epochs):
        feed.begin_epoch(epoch)
        for images, labels in batches:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            samples += len(labels)
            step(len(labels))
    seconds = time.perf_counter() - start
    return Result(feed.name, samples, seconds, batches.seconds, *accuracy(model, feed.val))


def largest_difference(left, right):
    """Between the validation pixels of two feeds; their order is that of the files."""
    return max((a - b).abs().max().item() for (a, _), (b, _) in zip(left, right, strict=True))


def show(console, results, difference):
    table = Table(title=f"{results[0].samples} samples each, {CPUS} CPUs, measured once")
    for heading in ("loader", "samples/s", "ratio", "waited for data", "accuracy"):
        table.add_column(heading, justify="left" if heading == "loader" else "right", no_wrap=True)
    base = results[0].samples / results[0].seconds
    for r in results:
        rate = r.samples / r.seconds
        table.add_row(r.name, f"{rate:.0f}", f"{rate / base:.2f}", f"{r.waited:.1f} of {r.seconds:.1f} s",
                      f"{r.accuracy:.1%} ± {r.accuracy_error:.1%}")
    console.print(table)
    console.print(f"largest difference between their validation pixels: {difference:.2g}")


def main():
    parser = argparse.ArgumentParser(description="train with torch's loader and with drapps, side by side")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--data", type=Path, default=Path("build/demo-data"), help="made there if missing")
    arguments = parser.parse_args()

    # Half of the CPUs train, as a stand-in for an accelerator; loading may use all, as each loader sees fit.
    torch.set_num_threads(max(1, CPUS // 2))
    console = Console()
    with console.status("making the image set"):
        data = make_demo_data(arguments.data)
    n_classes = sum(1 for _ in (data / "train").iterdir())
    n_samples = sum(1 for _ in (data / "train").glob("*/*.jpg")) * arguments.epochs
    feeds = [torch_feed(data, workers=CPUS), drapps_feed(data)]

    bar = [TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    results = []
    with Progress(*bar, console=console) as progress:
        for feed in feeds:
            task = progress.add_task(feed.name, total=n_samples)
            results.append(train(feed, n_classes, arguments.epochs, lambda n: progress.advance(task, n)))
    show(console, results, largest_difference(feeds[0].val, feeds[1].val))


if __name__ == "__main__":
    main()
