"""The workload imagenet-train-224, which all loaders of the bench run.

Read JPEG files, decode, RandomResizedCrop(224), RandomHorizontalFlip, float32, normalise, NCHW, batches of 64,
shuffled.  This file has the parts that the peers share: the list of files, the constants, the random crop of
torchvision (for peers without it), and the consumer that reads every batch.
"""

import hashlib
import json
import math
import os
import random
from dataclasses import dataclass

NAME = "imagenet-train-224"
SIZE = 224
BATCH = 64
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
EXTENSIONS = (".jpg", ".jpeg")


@dataclass(frozen=True)
class Files:
    """JPEG files with their labels: a class per folder, or a flat folder with one class."""

    root: str
    paths: tuple
    labels: tuple

    def __len__(self):
        return len(self.paths)

    def fingerprint(self):
        """Return a name for a converted copy of these files; it changes with the names and sizes of the files."""
        facts = [(os.path.relpath(p, self.root), os.path.getsize(p)) for p in self.paths]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def find_files(root):
    """List the JPEG files of `root` in the order of torchvision's ImageFolder."""
    root = os.path.abspath(root)
    if not os.path.isdir(root):
        raise SystemExit(f"--data must be a folder, got {str(root)!r}")
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    folders = [os.path.join(root, name) for name in classes] or [root]
    paths, labels = [], []
    for label, folder in enumerate(folders):
        for base, _, names in sorted(os.walk(folder)):
            found = [os.path.join(base, n) for n in sorted(names) if n.lower().endswith(EXTENSIONS)]
            paths += found
            labels += [label] * len(found)
    if not paths:
        raise SystemExit(f"--data must be a folder with files that end in {' or '.join(EXTENSIONS)}, got {str(root)!r}")
    return Files(root, tuple(paths), tuple(labels))


def shuffled(files, rng=random):
    """Yield endless indices: every file once per epoch, each epoch in a new order."""
    order = list(range(len(files)))
    while True:
        rng.shuffle(order)
        yield from order


def draw_box(width, height, rng=random):
    """Return (x, y, w, h) as torchvision's RandomResizedCrop draws it: ten tries, else the centre."""
    log_ratio = math.log(RATIO[0]), math.log(RATIO[1])
    for _ in range(10):
        area = width * height * rng.uniform(*SCALE)
        ratio = math.exp(rng.uniform(*log_ratio))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return rng.randint(0, width - w), rng.randint(0, height - h), w, h
    w = min(width, round(height * RATIO[1]))
    h = min(height, round(width / RATIO[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def read_batch(images):
    """Consume a batch: read one float of every 64-byte line, so that the whole batch passes through the cache.

    images: a NumPy array with dense memory in any order of axes; nothing is copied.
    """
    flat = images.ravel(order="K")
    if flat.base is None:
        raise ValueError(f"images must be dense, got strides {images.strides}: reading would copy")
    return float(flat[::16].sum())


def scale_and_shift():
    """Return (multiply, add) per channel: normalised = byte * multiply + add."""
    return [1 / (255 * s) for s in STD], [-m / s for m, s in zip(MEAN, STD)]


def to_levels(normalised):
    """Convert normalised float32 NCHW back to levels 0..255 as float64, the unit of pixel comparisons."""
    import numpy as np

    std = np.array(STD).reshape(1, 3, 1, 1)
    mean = np.array(MEAN).reshape(1, 3, 1, 1)
    return (normalised.astype(np.float64) * std + mean) * 255
