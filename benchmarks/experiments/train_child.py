"""Trains a small network on a folder of images with one loader, and prints a JSON line.

    python -m benchmarks.experiments.train_child --data DIR --loader drapps|torch --workers N|auto --samples N

The network trains on the CPUs that also load the data.
"""

import argparse
import itertools
import json
import time

import torch

from drapps.bench.standins import import_torchvision

BATCH, SIZE = 32, 96


def make_network(classes):
    """Return a network of three convolutions: a step takes about as long as making its batch."""
    def block(into, out):
        return torch.nn.Conv2d(into, out, 3, stride=2, padding=1), torch.nn.BatchNorm2d(out), torch.nn.ReLU()

    return torch.nn.Sequential(*block(3, 32), *block(32, 64), *block(64, 128), torch.nn.AdaptiveAvgPool2d(1),
                               torch.nn.Flatten(), torch.nn.Linear(128, classes))  # fmt: skip


def open_loader(args):
    """Return the loader over torchvision's ImageFolder.  workers "auto": not given."""
    import_torchvision()
    from torchvision import datasets, transforms

    chain = transforms.Compose([transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(),
                                transforms.ToTensor()])  # fmt: skip
    dataset = datasets.ImageFolder(args.data, chain)
    given = {} if args.workers == "auto" else {"num_workers": int(args.workers)}
    if args.loader == "torch":
        return torch.utils.data.DataLoader(dataset, BATCH, shuffle=True, drop_last=True, **given)
    import drapps

    return drapps.DataLoader(dataset, BATCH, shuffle=True, drop_last=True, **given)


def train(loader, samples):
    """Return (seconds, samples, mean loss)."""
    network = make_network(len(loader.dataset.classes))
    optimizer, taken, losses = torch.optim.SGD(network.parameters(), 0.05, momentum=0.9), 0, []
    began = time.monotonic()
    for images, labels in itertools.chain.from_iterable(itertools.repeat(loader)):
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        taken += len(labels)
        if taken >= samples:
            return time.monotonic() - began, taken, sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--loader", choices=("drapps", "torch"), required=True)
    parser.add_argument("--workers", default="auto")
    parser.add_argument("--samples", type=int, default=20_000)
    args = parser.parse_args()
    torch.manual_seed(0)
    seconds, taken, loss = train(open_loader(args), args.samples)
    print(json.dumps({"seconds": seconds, "samples": taken, "loss": loss}))


if __name__ == "__main__":
    main()
