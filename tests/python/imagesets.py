"""Small image sets made with Pillow, and what tests do with loaders."""

import subprocess
import sys
import textwrap

import numpy
from PIL import Image

import drapps

N_IMAGES = 23


def picture(i, height=48, width=64):
    """A smooth picture that differs from every other."""
    y, x = numpy.mgrid[0:height, 0:width]
    channels = [(x * (i % 5 + 1) + 31 * i) % 256, (y * (i % 3 + 2) + 17 * i) % 256, (x + y + 7 * i) % 256]
    return Image.fromarray(numpy.stack(channels, axis=-1).astype(numpy.uint8))


def write_folder(root, n=N_IMAGES, classes=("ant", "bee", "cat"), size=None):
    """n JPEG files of several sizes, or of one (height, width), in one folder per class."""
    for name in classes:
        (root / name).mkdir(parents=True)
    for i in range(n):
        height, width = size or (40 + 3 * (i % 7), 56 + 5 * (i % 4))
        picture(i, height, width).save(root / classes[i % len(classes)] / f"{i:03}.jpg", quality=90)
    return root


def write_flat_images(folder, n, bad=()):
    """n small PNG files of one class, each of one grey, its number; some are damaged."""
    (folder / "a").mkdir()
    for i in range(n):
        path = folder / "a" / f"{i:03}.png"
        if i in bad:
            path.write_bytes(b"\x89PNG broken")
        else:
            Image.fromarray(numpy.full((6, 6, 3), i, numpy.uint8)).save(path)
    return folder


def train(source):
    """The usual chain: decode, crop, flip, normalise."""
    pipe = source if isinstance(source, drapps.Pipeline) else drapps.read(source)
    return (
        pipe.decode()
        .random_resized_crop(32)
        .random_horizontal_flip()
        .normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
    )


def gather(loader):
    """[(images, labels, ids)] of an epoch, copied."""
    return [(batch["image"].copy(), batch["label"].copy(), list(batch.ids)) for batch in loader.batches()]


def same(a, b):
    """Whether two results of gather are equal, byte for byte."""
    return len(a) == len(b) and all(
        x[0].tobytes() == y[0].tobytes() and x[1].tobytes() == y[1].tobytes() and x[2] == y[2] for x, y in zip(a, b)
    )


def run_python(source, *args, timeout=60, **options):
    """Runs a program in a new interpreter; returns the finished process."""
    command = [sys.executable, "-c", textwrap.dedent(source), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)
