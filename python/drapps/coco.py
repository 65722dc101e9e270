"""COCO's instances files as a data set: images with their boxes, labels, masks and key points."""

import json
import math
import os
import tempfile

from drapps import _core
from drapps.build_info import info
from drapps.pipeline import Pipeline


def read_coco(annotations, root, empty=False, masks=False, keypoints=False, crowds=False):
    """Return a pipeline over the images of a COCO instances file, with the fields image, boxes and labels.

    annotations: the JSON file.
    root: the folder that its file names are relative to.
    empty: include images without boxes.
    crowds: include boxes of crowds, marked by a field "iscrowd".
    masks: add a field of uint8 masks (objects x height x width), made from polygons or run lengths as pycocotools does.
    keypoints: add a field of float32 key points (objects x points x 3: x, y, visibility).

    Boxes are float32 x0, y0, x1, y1; labels are category ids.  Boxes, masks and key points are transformed with their
    image by all ops, masks by nearest neighbour.  These fields are delivered as lists with one array per image;
    outputs="image,boxes,labels,image_id" of a loader adds the ids of the images.

    >>> pipe = drapps.read_coco("instances_train2017.json", "train2017").decode()
    """
    wanted = {"masks": masks, "keypoints": keypoints, "crowds": crowds}
    annotations = os.fspath(annotations)
    content = _load(annotations)
    rows = {
        _of(image, "id", annotations): _row(image, annotations, wanted)
        for image in _list(content, "images", annotations)
    }
    for note in _list(content, "annotations", annotations):
        row = rows.get(_of(note, "image_id", annotations))
        if row is None:
            raise _core.FormatError(
                f"{annotations}: {_who(note)} names image {note['image_id']!r}, which the file does not list"
            )
        if crowds or not note.get("iscrowd"):
            _add(row, note, annotations, wanted)
    if keypoints:
        _check_equal_lengths(rows.values(), annotations)
    rows = [row for row in rows.values() if empty or row["boxes"]]
    if not rows:
        raise _core.NotFoundError(f"{annotations}: no image has a box")
    pipe = Pipeline(open_rows(rows, annotations, root))
    return pipe.decode_masks() if masks else pipe


# --- what the file says ---


def _load(annotations):
    size, most = os.path.getsize(annotations), info()["limits"]["memory_bytes"] // 8  # as of lists
    if size > most:
        raise _core.LimitError(f"{annotations}: annotations of {size} bytes; the memory of this process allows {most}")
    try:
        with open(annotations, encoding="utf-8") as file:
            content = json.load(file)
    except ValueError as error:  # also bytes that are not UTF-8
        raise _core.FormatError(f"{annotations}: not a JSON file: {error}") from None
    if not isinstance(content, dict):
        raise _core.FormatError(f"{annotations}: must be an object with images and annotations")
    return content


def _list(content, name, annotations):
    value = content.get(name, [] if name == "annotations" else None)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise _core.FormatError(f'{annotations}: "{name}" must be a list of objects')
    return value


def _who(entry):
    return f"{'annotation' if 'image_id' in entry else 'image'} {entry.get('id', '?')}"


def _of(entry, name, annotations):
    if name not in entry:
        raise _core.FormatError(f'{annotations}: {_who(entry)} has no "{name}"')
    return entry[name]


def _number(entry, name, annotations):
    value = _of(entry, name, annotations)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _core.FormatError(f'{annotations}: {_who(entry)}: "{name}" must be an int, got {value!r}')
    return value


def _box(note, annotations):
    box = _of(note, "bbox", annotations)
    if not isinstance(box, list) or len(box) != 4 or not all(_is_real(value) for value in box):
        raise _core.FormatError(f'{annotations}: {_who(note)}: "bbox" must be four numbers, got {box!r}')
    x, y, width, height = box
    return [x, y, x + width, y + height]


def _add(row, note, annotations, wanted):
    row["boxes"].append(_box(note, annotations))
    row["labels"].append(_number(note, "category_id", annotations))
    if wanted["crowds"]:
        row["iscrowd"].append(int(bool(note.get("iscrowd"))))
    if wanted["masks"]:
        row["segmentation"]["objects"].append(_outline(note, annotations))
    if wanted["keypoints"]:
        points = _of(note, "keypoints", annotations)
        triples = isinstance(points, list) and points and len(points) % 3 == 0
        if not triples or not all(_is_real(value) for value in points):
            raise _core.FormatError(
                f'{annotations}: {_who(note)}: "keypoints" must be x, y, visibility of each, got {points!r:.60}'
            )
        row["keypoints"].append(points)


def _outline(note, annotations):
    """Return polygons unchanged, and run lengths with their members in the order that decode_masks reads."""
    shape = _of(note, "segmentation", annotations)
    if isinstance(shape, dict):
        return {"size": _of(shape, "size", annotations), "counts": _of(shape, "counts", annotations)}
    if not isinstance(shape, list) or not shape:
        raise _core.FormatError(
            f'{annotations}: {_who(note)}: "segmentation" must be polygons or run lengths, got {shape!r:.60}'
        )
    return shape


def _check_equal_lengths(rows, annotations):
    lengths = {len(points) for row in rows for points in row["keypoints"]}
    if len(lengths) > 1:
        raise _core.FormatError(
            f'{annotations}: all "keypoints" must have the same number of values, got {sorted(lengths)}'
        )


def _is_real(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _row(image, annotations, wanted):
    path = _of(image, "file_name", annotations)
    if not isinstance(path, str):
        raise _core.FormatError(f'{annotations}: {_who(image)}: "file_name" must be a text, got {path!r}')
    row = {"path": path, "boxes": [], "labels": [], "image_id": image["id"]}
    if wanted["crowds"]:
        row["iscrowd"] = []
    if wanted["keypoints"]:
        row["keypoints"] = []
    if wanted["masks"]:
        size = [_number(image, side, annotations) for side in ("height", "width")]
        row["segmentation"] = {"size": size, "objects": []}
    return row


# --- as a data set ---


def _with_text(row):
    """Return the row with its outlines as text.  As JSON they would be parsed and written again with more digits."""
    if "segmentation" not in row:
        return row
    return {**row, "segmentation": json.dumps(row["segmentation"], separators=(",", ":"))}


def open_rows(rows, name, root):
    """Return a native data set from dicts with a path (relative to root) and other columns.

    The library gets them as a file list in memory.  name: the file that errors name.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as listing:
        listing.writelines(json.dumps(_with_text(row)) + "\n" for row in rows)
        listing.flush()
        try:
            return _core.open_dataset(
                listing.name, format="list", root=os.path.abspath(root), use_index=False, name=name
            )
        except _core.Error as error:
            raise type(error)(str(error).replace(listing.name, name)) from None
