"""COCO's instances files as a data set: images with their boxes and labels."""

import json
import os
import tempfile

from drapps import _core
from drapps.pipeline import Pipeline


def read_coco(annotations, root, empty=False):
    """A pipeline over the images of a COCO instances file, with the fields image, boxes, labels and image_id.

    annotations: the JSON file.  root: the folder that its file names start from.
    empty: also images without boxes.  Boxes are float32 x0, y0, x1, y1; labels are category ids; crowds are left out.

    >>> pipe = drapps.read_coco("instances_train2017.json", "train2017").decode()  # doctest: +SKIP
    """
    with open(annotations, encoding="utf-8") as file:
        content = json.load(file)
    rows = {image["id"]: _row(image) for image in content["images"]}
    for note in content.get("annotations", ()):
        if not note.get("iscrowd"):
            x, y, width, height = note["bbox"]
            rows[note["image_id"]]["boxes"].append([x, y, x + width, y + height])
            rows[note["image_id"]]["labels"].append(note["category_id"])
    return Pipeline(_open([row for row in rows.values() if empty or row["boxes"]], annotations, root))


def _row(image):
    return {"path": image["file_name"], "boxes": [], "labels": [], "image_id": image["id"]}


def _open(rows, annotations, root):
    """Handed over as a list, which the library keeps in memory."""
    if not rows:
        raise _core.NotFoundError(f"{os.fspath(annotations)}: no image has a box")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as listing:
        listing.writelines(json.dumps(row) + "\n" for row in rows)
        listing.flush()
        return _core.open_dataset(listing.name, format="list", root=os.path.abspath(root), use_index=False)
