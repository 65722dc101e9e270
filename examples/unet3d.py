"""Trains a small 3D network on volumes of widely varying size: offline and online preprocessing as one block.

    python examples/unet3d.py [--volumes N] [--epochs N] [--cache FOLDER]

The offline part (normalise, resample, pad) depends only on the volume, the online part (flip, noise, crop) is random.
Nothing is preprocessed beforehand: training starts at once, and the results of the offline part are cached for later
epochs (and runs, if a folder is given).  `in_order=False` delivers small volumes before large ones that were started
earlier.
"""

import argparse
import tempfile

import numpy as np
from torch import nn
from torch.utils.data import Dataset
from training import train

from drapps import DataLoader, deterministic

CROP = 16


class Scans(Dataset):
    """Generated scans: a bright organ in noise, with 20 to 120 slices."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def read(self, key):
        rng = np.random.default_rng(key)
        image = rng.normal(0, 60, (int(rng.integers(20, 120)), 48, 48))
        label = np.zeros(image.shape, np.uint8)
        low = [int(rng.integers(2, n - 10)) for n in image.shape]
        label[tuple(slice(a, a + 8) for a in low)] = 1
        return image + 150 * label, label

    @deterministic
    def offline(self, key):
        """Scale intensities to mean 0 and deviation 1, and halve the number of slices."""
        image, label = self.read(key)
        image = (image - image.mean()) / image.std()
        image = (image[0::2][:image.shape[0] // 2] + image[1::2]) / 2
        label = label[0::2][:image.shape[0]]
        lack = max(0, CROP - image.shape[0])
        return np.pad(image, ((0, lack), (0, 0), (0, 0))), np.pad(label, ((0, lack), (0, 0), (0, 0)))

    def __getitem__(self, key):
        image, label = self.offline(key)
        for axis in range(3):
            if np.random.random() < 1 / 3:
                image, label = np.flip(image, axis), np.flip(label, axis)
        if np.random.random() < 0.1:
            image = image + np.random.normal(0, 0.1, image.shape)
        low = [np.random.randint(0, n - CROP + 1) for n in image.shape]
        if np.random.random() < 0.4:  # a crop that contains a part of the organ
            middle = np.argwhere(label)[np.random.randint(np.count_nonzero(label))]
            low = [int(np.clip(m - CROP // 2, 0, n - CROP)) for m, n in zip(middle, image.shape)]
        box = tuple(slice(a, a + CROP) for a in low)
        return image[box].astype(np.float32)[None], label[box].astype(np.int64), key


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--volumes", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", metavar="FOLDER")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        loader = DataLoader(Scans(arguments.volumes), batch_size=4, shuffle=True, num_workers=arguments.workers,
                            in_order=False, persistent_workers=True, cache=arguments.cache or scratch)
        model = nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 2, 3, padding=1))
        train(model, loader, nn.functional.cross_entropy, arguments.epochs, "volumes")


if __name__ == "__main__":
    main()
