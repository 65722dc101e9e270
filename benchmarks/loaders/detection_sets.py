"""Data sets for SSD-like detection: COCO's layout or generated, with the five online ops in PIL and NumPy."""

import glob
import json
import os

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageEnhance
from torch.utils.data import Dataset

SIDE = 300
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def find_coco(folder):
    """Find (annotations, folder of the images) below a folder."""
    tables = sorted(glob.glob(os.path.join(folder, "**", "instances*.json"), recursive=True))
    images = sorted(glob.glob(os.path.join(folder, "**", "*.jpg"), recursive=True))
    if not tables or not images:
        raise SystemExit(f"{folder}: no instances*.json, or no JPEG files")
    return tables[0], os.path.dirname(images[0])


def read_boxes(folder):
    """Return [(path, boxes x0 y0 x1 y1, labels)] of the images that have boxes."""
    table, images = find_coco(folder)
    with open(table) as f:
        coco = json.load(f)
    names = {image["id"]: image["file_name"] for image in coco["images"]}
    found = {}
    for entry in coco["annotations"]:
        x, y, w, h = entry["bbox"]
        if w >= 1 and h >= 1 and not entry.get("iscrowd"):
            boxes, labels = found.setdefault(names[entry["image_id"]], ([], []))
            boxes.append((x, y, x + w, y + h))
            labels.append(entry["category_id"])
    return [(os.path.join(images, name), *parts) for name, parts in sorted(found.items())]


def write_coco(folder, n):
    """Write images of rectangles on noise, in COCO's layout."""
    os.makedirs(os.path.join(folder, "images"))
    rng = np.random.default_rng(0)
    images, annotations = [], []
    for i in range(n):
        width, height = (int(side) for side in rng.integers(200, 700, 2))
        image = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        for _ in range(int(rng.integers(1, 6))):
            x, y = int(rng.integers(0, width - 40)), int(rng.integers(0, height - 40))
            w, h = (int(side) for side in rng.integers(20, 40, 2))
            ImageDraw.Draw(image).rectangle((x, y, x + w, y + h), fill=(255, 0, 0))
            annotations.append({"image_id": i, "bbox": [x, y, w, h], "category_id": 1 + len(annotations) % 3})
        images.append({"id": i, "file_name": f"{i:06d}.jpg"})
        image.save(os.path.join(folder, "images", images[-1]["file_name"]), quality=85)
    with open(os.path.join(folder, "instances.json"), "w") as f:
        json.dump({"images": images, "annotations": annotations}, f)
    return folder


def overlap(boxes, window):
    """Return the intersection over union of each box with a window."""
    low, high = np.maximum(boxes[:, :2], window[:2]), np.minimum(boxes[:, 2:], window[2:])
    inner = np.prod(np.clip(high - low, 0, None), axis=1)
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) + np.prod(window[2:] - window[:2])
    return inner / (area - inner)


def random_window(size, boxes, rng, tries=50):
    """Return SSD's crop: a window that overlaps a box by at least a random share; the whole image if none is found."""
    whole = np.array([0, 0, *size], np.float32)
    least = rng.choice([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
    for _ in range(0 if least == 1.0 else tries):
        w, h = (rng.uniform(0.3, 1.0, 2) * size).astype(int)
        x, y = int(rng.integers(0, size[0] - w + 1)), int(rng.integers(0, size[1] - h + 1))
        window = np.array([x, y, x + w, y + h], np.float32)
        if 0.5 <= w / h <= 2 and kept(boxes, window).any() and overlap(boxes, window).max() >= least:
            return window
    return whole


def kept(boxes, window):
    """Return which boxes have their centre in the window."""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    return ((middle > window[:2]) & (middle < window[2:])).all(axis=1)


def crop_boxes(boxes, window):
    """Return boxes clipped to the window, relative to its size."""
    size = window[2:] - window[:2]
    low, high = np.maximum(boxes[:, :2], window[:2]), np.minimum(boxes[:, 2:], window[2:])
    return np.concatenate([(low - window[:2]) / size, (high - window[:2]) / size], axis=1)


def augment(image, boxes, labels, rng):
    """Crop, resize, flip, colour, normalise; return (float32 CHW, boxes relative to the image's size, labels)."""
    window = random_window(np.array(image.size), boxes, rng)
    stay = kept(boxes, window)
    boxes, labels = crop_boxes(boxes[stay], window), labels[stay]
    image = image.crop(tuple(int(side) for side in window)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    if rng.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        boxes = np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], axis=1)
    for enhancer in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        if rng.random() < 0.5:
            image = enhancer(image).enhance(rng.uniform(0.7, 1.3))
    pixels = (np.asarray(image, np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)), boxes.astype(np.float32), labels


class Detection(Dataset):
    """The data set.  Random choices depend only on key and epoch, so all loaders make the same samples."""

    def __init__(self, entries):
        self.entries, self.epoch = entries, 0

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, key):
        path, boxes, labels = self.entries[key]
        with Image.open(path) as image:
            image = image.convert("RGB")
        rng = np.random.default_rng([self.epoch, key])
        return *augment(image, np.array(boxes, np.float32), np.array(labels), rng), key


def collate(samples):
    """Return (images, boxes, labels, keys): images stacked, boxes in one list with the number of their image first."""
    images, boxes, labels, keys = zip(*samples)
    owner = np.repeat(np.arange(len(samples), dtype=np.float32), [len(b) for b in boxes])
    return (torch.from_numpy(np.stack(images)), torch.from_numpy(np.column_stack([owner, np.concatenate(boxes)])),
            torch.from_numpy(np.concatenate(labels)), torch.tensor(keys))
