"""The image set of the demo: crops of scikit-image's photos, as JPEG files of many sizes and qualities.

A class is a photo, a sample is a crop of it.  Training crops come from the left part of each photo and validation crops
from the right part, so no validation pixel was ever trained on.  Nothing is downloaded.
"""

import importlib.util
import random
import shutil
from pathlib import Path

from PIL import Image, ImageEnhance

PHOTOS = ["astronaut.png", "brick.png", "chelsea.png", "coffee.png", "coins.png", "grass.png", "gravel.png",
          "hubble_deep_field.jpg", "ihc.png", "motorcycle_left.png", "retina.jpg", "rocket.jpg"]
TRAIN_PART = 0.65
PER_CLASS = {"train": 50, "val": 80}
VERSION = "2"  # a new number invalidates cached sets


def photo_folder():
    """Return the folder of scikit-image's photos, without importing it."""
    spec = importlib.util.find_spec("skimage")
    if spec is None:
        raise SystemExit("the demo's photos come with scikit-image: pip install --no-deps scikit-image")
    return Path(spec.submodule_search_locations[0]) / "data"


def part_of(photo, split):
    border = round(photo.width * TRAIN_PART)
    box = (0, 0, border, photo.height) if split == "train" else (border, 0, photo.width, photo.height)
    return photo.crop(box)


def crop_of(part, rng):
    """Return a crop of a third to all of the part, resized to the size of an ordinary photo, with a
    small change of light."""
    width, height = (round(side * rng.uniform(0.35, 1.0)) for side in part.size)
    x, y = rng.randint(0, part.width - width), rng.randint(0, part.height - height)
    scale = rng.uniform(320, 640) / max(width, height)
    size = tuple(max(32, round(side * scale)) for side in (width, height))
    crop = part.crop((x, y, x + width, y + height)).resize(size, Image.Resampling.BICUBIC)
    return ImageEnhance.Brightness(crop).enhance(rng.uniform(0.7, 1.3))


def write_class(photo, folder, split, rng):
    folder.mkdir(parents=True)
    part = part_of(photo, split)
    for i in range(PER_CLASS[split]):
        crop = crop_of(part, rng)
        crop.save(folder / f"{i:03d}.jpg", quality=rng.randint(60, 95), progressive=rng.random() < 0.1)


def make_demo_data(root):
    """Make the set below `root` if it is missing; return `root`."""
    root = Path(root)
    stamp = root / "version"
    if stamp.is_file() and stamp.read_text() == VERSION:
        return root
    shutil.rmtree(root, ignore_errors=True)
    rng = random.Random(0)
    photos = photo_folder()
    for name in PHOTOS:
        with Image.open(photos / name) as opened:
            photo = opened.convert("RGB")
        for split in PER_CLASS:
            write_class(photo, root / split / Path(name).stem, split, rng)
    stamp.write_text(VERSION)
    return root
