"""A training script for PyTorch and torchvision.  Only one import was changed to use drapps.

    python examples/train_torch.py [--data IMAGEFOLDER] [--epochs N] [--torch]

--torch uses torch's loader, to compare.  Without --data it generates some images first.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
import torch.utils.data
from PIL import Image, ImageDraw
from torch import nn
from vision import import_torchvision

import_torchvision()
from torchvision import datasets, transforms

from drapps import DataLoader  # was: from torch.utils.data import DataLoader

TRANSFORM = transforms.Compose([
    transforms.RandomResizedCrop(64, scale=(0.5, 1.0)),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
])


def make_images(root, per_class):
    """Write circles and squares of random colours as JPEG files in two folders."""
    generator = torch.Generator().manual_seed(0)
    for name in ("circle", "square"):
        (root / name).mkdir(parents=True)
        for i in range(per_class):
            colour, corner = (torch.randint(0, n, (k,), generator=generator).tolist() for n, k in ((256, 6), (60, 2)))
            image = Image.new("RGB", (160, 120), tuple(colour[:3]))
            box = (*corner, corner[0] + 60, corner[1] + 60)
            draw = ImageDraw.Draw(image)
            (draw.ellipse if name == "circle" else draw.rectangle)(box, fill=tuple(colour[3:]))
            image.save(root / name / f"{i}.jpg")
    return root


def network(n_classes):
    return nn.Sequential(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, n_classes))


def train_epoch(model, optimizer, loader):
    """Return (samples, correct predictions)."""
    samples = right = 0
    for images, labels in loader:
        output = model(images)
        optimizer.zero_grad()
        nn.functional.cross_entropy(output, labels).backward()
        optimizer.step()
        samples += len(labels)
        right += int((output.argmax(1) == labels).sum())
    return samples, right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with one folder per class")
    parser.add_argument("--images", type=int, default=200, help="number of images per class to generate without --data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--torch", action="store_true", help="use torch's loader")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = datasets.ImageFolder(arguments.data or make_images(Path(scratch) / "set", arguments.images), TRANSFORM)
        make = torch.utils.data.DataLoader if arguments.torch else DataLoader
        loader = make(data, batch_size=32, shuffle=True, num_workers=arguments.workers, persistent_workers=True)
        model = network(len(data.classes))
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for epoch in range(arguments.epochs):
            began = time.perf_counter()
            samples, right = train_epoch(model, optimizer, loader)
            rate = samples / (time.perf_counter() - began)
            print(f"epoch {epoch}: {samples} samples, {rate:.0f} samples/s, accuracy {right / samples:.1%}")


if __name__ == "__main__":
    main()
