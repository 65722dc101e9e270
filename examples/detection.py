"""Trains a small detector on images with boxes, each image with a different number of them.

    python examples/detection.py [--images N] [--epochs N]

Boxes follow their image through crop and flip.  `collate` stacks the images and strings the boxes together; it runs in
the workers.
"""

import argparse

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn
from torch.utils.data import Dataset
from training import train

from drapps import DataLoader

SIDE, CELLS = 96, 6


class Shapes(Dataset):
    """Images with one to four bright squares; a sample is (image, boxes in shares of it, key)."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def read(self, key):
        rng = np.random.default_rng(key)
        width, height = (int(side) for side in rng.integers(120, 300, 2))
        image = Image.fromarray(rng.integers(0, 120, (height, width, 3), dtype=np.uint8))
        corners = rng.uniform(0, 0.8, (int(rng.integers(1, 5)), 2)) * (width, height)
        boxes = np.concatenate([corners, corners + 0.15 * min(width, height)], axis=1)
        for box in boxes:
            ImageDraw.Draw(image).rectangle(tuple(box), fill=(255, 240, 80))
        return image, boxes

    def __getitem__(self, key):
        image, boxes = self.read(key)
        crop = np.random.uniform(0, 0.15, 4) * (1, 1, -1, -1) * np.tile(image.size, 2)
        window = crop + (0, 0, *image.size)
        image = image.resize((SIDE, SIDE), box=tuple(window))
        size = np.tile(window[2:] - window[:2], 2)
        boxes = np.clip((boxes - np.tile(window[:2], 2)) / size, 0, 1)
        boxes = boxes[(boxes[:, 2:] - boxes[:, :2]).min(axis=1) > 0.02]
        if np.random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            boxes = np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], axis=1)
        return np.asarray(image, np.float32).transpose(2, 0, 1) / 255, boxes.astype(np.float32), key


def collate(samples):
    """(images, boxes with the number of their image first, keys)"""
    images, boxes, keys = zip(*samples)
    owner = np.repeat(np.arange(len(samples), dtype=np.float32), [len(b) for b in boxes])
    return (torch.from_numpy(np.stack(images)), torch.from_numpy(np.column_stack([owner, np.concatenate(boxes)])),
            torch.tensor(keys))


def middles(boxes, n):
    """1 in the cells that hold the middle of a box: what the detector learns to find."""
    target = torch.zeros(n, 1, CELLS, CELLS)
    middle = ((boxes[:, 1:3] + boxes[:, 3:5]) / 2 * CELLS).long().clamp(0, CELLS - 1)
    target[boxes[:, 0].long(), 0, middle[:, 1], middle[:, 0]] = 1
    return target


def loss_of(found, boxes):
    return nn.functional.binary_cross_entropy_with_logits(found, middles(boxes, len(found)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    loader = DataLoader(Shapes(arguments.images), batch_size=16, shuffle=True, collate_fn=collate,
                        num_workers=arguments.workers, in_order=False, persistent_workers=True)
    model = nn.Sequential(nn.Conv2d(3, 16, 5, stride=4, padding=2), nn.ReLU(),
                          nn.Conv2d(16, 32, 5, stride=4, padding=2),
                          nn.ReLU(), nn.Conv2d(32, 1, 1))
    train(model, loader, loss_of, arguments.epochs, "images")


if __name__ == "__main__":
    main()
