"""Starts a drapps server over a folder of images and trains from it, over the loopback network.

    python examples/far_training.py [--images N] [--epochs N] [--offload MODE]

On a real network, the server runs next to the storage: `drapps serve FOLDER --host 0.0.0.0`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from train_torch import make_images
from vision import import_torchvision

from drapps import DataLoader, RemoteImageFolder

SIZE, BATCH = 64, 16


def start_server(folder):
    """Starts a server at any free port; returns (process, port)."""
    ready, told = os.pipe()
    command = [sys.executable, "-m", "drapps.cli", "serve", str(folder), "--port", "0", "--ready-fd", str(told)]
    server = subprocess.Popen(command, pass_fds=(told,))
    os.close(told)
    with os.fdopen(ready) as pipe:
        port = pipe.readline().strip()
    if not port:
        raise SystemExit("the server did not start")
    return server, int(port)


def train(url, epochs, offload):
    """A small network, trained on the images of a set."""
    transforms = import_torchvision().transforms
    images = RemoteImageFolder(url, transforms.Compose([
        transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
    ]))  # fmt: skip
    loader = DataLoader(images, BATCH, shuffle=True, seed=1, num_workers=2, offload=offload)
    model = nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(len(images.classes)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        start, n = time.perf_counter(), 0
        for pixels, labels in loader:
            loss = nn.functional.cross_entropy(model(pixels), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n += len(labels)
        prepared = loader.stats()["offload_samples"]
        print(f"epoch {epoch}: {n} samples, {n / (time.perf_counter() - start):.0f} samples/s, "
              f"{prepared} prepared by the server so far")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=400, help="images to make (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--offload", default="auto", help="what the server runs: auto, off, all, resize, sophon, ...")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_images(Path(folder) / "photos", args.images // 2)
        server, port = start_server(folder)
        try:
            train(f"drapps://127.0.0.1:{port}/photos", args.epochs, args.offload)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
