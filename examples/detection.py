"""Trains a small detector on a COCO-style data set: images with boxes, each image with a different number of them.

    python examples/detection.py [--images N] [--epochs N]
    python examples/detection.py --annotations instances_train2017.json --root train2017

Without arguments it generates a small set.  Boxes are transformed with their image by every op; labels stay with their
boxes.
"""

import argparse
import json
import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn
from training import train

import drapps

SIDE, CELLS = 96, 6


def draw_set(folder, n):
    """Write images with one to four bright squares, and an instances.json of COCO's form."""
    images, annotations = [], []
    for number in range(n):
        rng = np.random.default_rng(number)
        width, height = (int(side) for side in rng.integers(120, 300, 2))
        image = Image.fromarray(rng.integers(0, 120, (height, width, 3), dtype=np.uint8))
        side = round(0.15 * min(width, height), 2)
        for x, y in np.round(rng.uniform(0, 0.8, (int(rng.integers(1, 5)), 2)) * (width, height), 2).tolist():
            ImageDraw.Draw(image).rectangle((x, y, x + side, y + side), fill=(255, 240, 80))
            annotations.append(
                {"id": len(annotations), "image_id": number, "category_id": 1, "bbox": [x, y, side, side]}
            )
        image.save(folder / f"{number}.jpg")
        images.append({"id": number, "file_name": f"{number}.jpg", "width": width, "height": height})
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations}))
    return path, folder


def middles(boxes, offsets):
    """Return the target of the detector: 1 in the cells that contain the centre of a box."""
    n = len(offsets) - 1
    target = torch.zeros(n, 1, CELLS, CELLS)
    owner = torch.repeat_interleave(torch.arange(n), offsets.diff())
    x, y = ((boxes[:, :2] + boxes[:, 2:]) / 2 * (CELLS / SIDE)).long().clamp(0, CELLS - 1).T
    target[owner, 0, y, x] = 1
    return target


class Batches:
    """Yields (images, targets, image ids) of each batch."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        for batch in self.loader:
            yield batch["image"], middles(batch["boxes"], batch["boxes_offsets"]), batch["image_id"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--annotations", help="instances file of COCO's form")
    parser.add_argument("--root", help="folder of its images")
    parser.add_argument("--images", type=int, default=256, help="number of images to generate without --annotations")
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = (arguments.annotations, arguments.root) if arguments.annotations else \
            draw_set(pathlib.Path(folder), arguments.images)
        pipe = (drapps.read_coco(*where)
                .decode()
                .random_zoom_out(side_range=(1, 1.5))
                .random_horizontal_flip()
                .resize((SIDE, SIDE))
                .sanitize_bounding_boxes()
                .normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD))  # fmt: skip
        loader = pipe.loader(batch_size=16, shuffle=True, outputs=("image", "boxes", "labels", "image_id"),
                             collate={"boxes": "ragged", "labels": "ragged"})  # fmt: skip
        model = nn.Sequential(nn.Conv2d(3, 16, 5, stride=4, padding=2), nn.ReLU(),
                              nn.Conv2d(16, 32, 5, stride=4, padding=2), nn.ReLU(), nn.Conv2d(32, 1, 1))  # fmt: skip
        train(model, Batches(loader), nn.functional.binary_cross_entropy_with_logits, arguments.epochs, "images")


if __name__ == "__main__":
    main()
