"""A small COCO set: photographs of noise with annotated shapes, made anew for each test that asks."""

import json

import numpy
from PIL import Image

CATEGORIES = [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}, {"id": 90, "name": "kite"}]


def polygon(random, height, width):
    """A ring of points around a centre, some of them beyond the image's edge, with two decimals as COCO has them."""
    n = int(random.integers(3, 12))
    angles = numpy.sort(random.uniform(0, 2 * numpy.pi, n))
    radius = random.uniform(3, 0.4 * min(height, width), n)
    centre = random.uniform(0.1, 0.9, 2) * (width, height)
    points = centre + numpy.stack([numpy.cos(angles), numpy.sin(angles)], 1) * radius[:, None]
    return [round(float(v), 2) for v in points.ravel()]


def box_of(points, height, width):
    x, y = numpy.clip(points[::2], 0, width), numpy.clip(points[1::2], 0, height)
    return [round(float(v), 2) for v in (min(x), min(y), max(x) - min(x), max(y) - min(y))]


def make_coco(folder, n=12, seed=0, keypoints=0):
    """Writes images and instances.json below the folder; returns the annotation file."""
    random = numpy.random.default_rng(seed)
    images, notes = [], []
    for i in range(n):
        height, width = (int(v) for v in random.integers(60, 200, 2))
        pixels = random.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype="uint8")
        image = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)
        image.save(folder / f"{i:03}.jpg", quality=90)
        images.append({"id": 100 + i, "file_name": f"{i:03}.jpg", "height": height, "width": width})
        for _ in range(int(random.integers(1, 6)) if i % 5 != 4 else 0):
            notes.append(note(random, len(notes) + 1, 100 + i, height, width, keypoints))
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": notes, "categories": CATEGORIES}))
    return path


def note(random, number, image_id, height, width, keypoints):
    parts = [polygon(random, height, width) for _ in range(int(random.integers(1, 3)))]
    x, y, w, h = zip(*(box_of(part, height, width) for part in parts))
    right, bottom = max(a + b for a, b in zip(x, w)), max(a + b for a, b in zip(y, h))
    box = [min(x), min(y), max(right - min(x), 2), max(bottom - min(y), 2)]
    one = {"id": number, "image_id": image_id, "category_id": int(random.choice([3, 7, 90])), "iscrowd": 0,
           "bbox": [round(v, 2) for v in box], "area": round(box[2] * box[3], 2), "segmentation": parts}  # fmt: skip
    if number % 4 == 3:
        one["segmentation"] = runs(random, height, width)
    if keypoints:
        points = numpy.round(random.uniform(0, 1, (keypoints, 2)) * (width - 1, height - 1), 1)
        seen = random.integers(0, 3, keypoints)
        one["keypoints"] = [float(v) for row in zip(points[:, 0], points[:, 1], seen) for v in row]
        one["num_keypoints"] = int((seen > 0).sum())
    return one


def runs(random, height, width):
    """An uncompressed RLE, as COCO has it for crowds."""
    ends = numpy.sort(random.choice(height * width, 2 * int(random.integers(2, 30)), replace=False))
    counts = numpy.diff(numpy.concatenate([[0], ends, [height * width]]))
    return {"size": [height, width], "counts": [int(v) for v in counts]}
