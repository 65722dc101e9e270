"""Data sets with the sizes of sets that are too large or not open enough to keep: made from a folder of JPEGs.

open_images_twin: SOPHON's Open Images sample, whose files have a mean of 300 KB and are smaller than a crop of 224
pixels (150,528 bytes) in 24 of 100 cases: sizes of a lognormal distribution.  repeated: a set as often as is needed to
have so many bytes, under distinct names.
"""

import io
import os
import pathlib
import random

import numpy as np
from PIL import Image

CROP_BYTES = 224 * 224 * 3
MEDIAN_BYTES, SIGMA = 240_600, 0.664  # of the lognormal distribution
SIZE = (1024, 768)
QUALITIES = (5, 96)
GRAINS = (0, 64)  # standard deviation of noise that is added where the best quality is still too small


def jpegs(folder):
    found = sorted(path for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    if not found:
        raise SystemExit(f"{folder}: no JPEG files in it")
    return found


def open_images_twin(source, folder, n, seed=0):
    """Write n JPEGs of 1024 x 768 pixels, in ten classes; a folder that has them already is kept."""
    folder = pathlib.Path(folder)
    draw = random.Random(seed)
    files = jpegs(source)
    for i in range(n):
        target = draw.lognormvariate(np.log(MEDIAN_BYTES), SIGMA)
        path = folder / f"class-{i % 10}" / f"{i:05d}.jpg"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(files[i % len(files)]) as image:
            pixels = image.convert("RGB").resize(SIZE, Image.Resampling.BICUBIC)
        part = path.with_suffix(".part")
        part.write_bytes(of_size(pixels, target, i))
        os.replace(part, path)
    return folder


def of_size(image, target, seed):
    """The JPEG of an image whose size is nearest to the target, by its quality, then by grain."""
    best = encode(image, QUALITIES[1])
    if len(best) >= target:
        return nearest(lambda quality: encode(image, quality), QUALITIES, target)
    noise = np.random.default_rng(seed).normal(size=(*image.size[::-1], 1))
    pixels = np.asarray(image, np.float32)

    def grained(sigma):
        return encode(Image.fromarray(np.clip(pixels + sigma * noise, 0, 255).astype(np.uint8)), QUALITIES[1])

    return nearest(grained, GRAINS, target)


def nearest(make, between, target):
    """make(x) for the whole x in an interval whose result, which grows with x, is nearest to the target size."""
    low, high = between
    seen = {}
    while low < high:
        middle = (low + high) // 2
        seen[middle] = make(middle)
        low, high = (middle + 1, high) if len(seen[middle]) < target else (low, middle)
    seen[low] = seen.get(low) or make(low)
    return min(seen.values(), key=lambda data: abs(len(data) - target))


def encode(image, quality):
    data = io.BytesIO()
    image.save(data, "JPEG", quality=quality)
    return data.getvalue()


def repeated(source, folder, least):
    """Link the files of a set of class folders as often as they are needed to have at least that many bytes.

    Links are hard where both folders are on one file system, so that they take no room.
    """
    source, folder = pathlib.Path(source), pathlib.Path(folder)
    files = jpegs(source)
    size, turn = 0, 0
    while size < least:
        for path in files:
            place = folder / path.relative_to(source).parent / f"{turn:03d}-{path.name}"
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(path, place)
            size += path.stat().st_size
            if size >= least:
                break
        turn += 1
    return folder


def copied(source, folder):
    """A copy of a set, by hard links where that is possible."""
    for path in jpegs(source):
        place = folder / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(path, place)
    return folder


def link_or_copy(path, place):
    try:
        os.link(path, place)
    except OSError:
        place.write_bytes(path.read_bytes())
