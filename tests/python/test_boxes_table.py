"""Each op of the table that moves pixels moves boxes as torchvision's v2 does, or says that it cannot."""

import cocosets
import numpy
import pytest
import torch
from op_runner import import_torchvision

import drapps
from drapps.optable import TABLE

import_torchvision()
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

TOLERANCE = 1e-4
PLACE = ("top", "left", "height", "width")


def crop_of(boxes, drawn):
    return F.crop(boxes, *(drawn[key] for key in PLACE))


def zoom_out(boxes, drawn):
    if not drawn["applied"]:
        return boxes
    height, width = boxes.canvas_size
    right, bottom = drawn["width"] - width - drawn["left"], drawn["height"] - height - drawn["top"]
    return F.pad(boxes, [drawn["left"], drawn["top"], right, bottom])


def iou_crop(boxes, drawn):
    if not drawn["cropped"]:
        return boxes
    centre, low = (boxes[:, :2] + boxes[:, 2:]) / 2, torch.tensor([drawn["left"], drawn["top"]])
    inside = ((centre > low) & (centre < low + torch.tensor([drawn["width"], drawn["height"]]))).all(1)
    boxes = crop_of(boxes, drawn)
    boxes[~inside] = 0  # as v2.RandomIoUCrop does
    return boxes


def rotate(**settings):
    return lambda boxes, drawn: F.rotate(boxes, drawn["angle"], **settings)


def affine(**settings):
    def moved(boxes, drawn):
        shift, shear = ([drawn[f"{name}_x"], drawn[f"{name}_y"]] for name in ("translate", "shear"))
        return F.affine(boxes, drawn["angle"], shift, drawn["scale"], shear, **settings)

    return moved


def padded_center_crop(size):
    """As torchvision does with the image.  Its own boxes are a pixel off the image where a border
    of 3, 7, 11... is added."""

    def moved(boxes, drawn):
        missing = [max(wanted - given, 0) for wanted, given in zip(size, boxes.canvas_size)]
        sides = [missing[1] // 2, missing[0] // 2, (missing[1] + 1) // 2, (missing[0] + 1) // 2]
        return F.center_crop(F.pad(boxes, sides), size)

    return moved


FREE = {"degrees": 180, "translate": (0.2, 0.3), "scale": (0.5, 1.5), "shear": (-20, 20, -10, 30)}

# op: [(settings, what torchvision makes of the boxes and what was drawn)]
REFERENCE = {
    "resize": [({"size": size}, lambda boxes, drawn, size=size: F.resize(boxes, size)) for size in (40, (123, 77))],
    "crop": [({"top": 7, "left": 9, "height": 30, "width": 40}, lambda boxes, drawn: F.crop(boxes, 7, 9, 30, 40))],
    "center_crop": [({"size": (51, 40)}, lambda boxes, drawn: F.center_crop(boxes, (51, 40))),
                    ({"size": (51, 190)}, padded_center_crop((51, 190)))],
    "pad": [({"padding": [3, 5, 7, 9]}, lambda boxes, drawn: F.pad(boxes, [3, 5, 7, 9]))],
    "random_crop": [({"size": (40, 90), "padding": 4, "pad_if_needed": True},
                     lambda boxes, drawn: crop_of(F.pad(boxes, drawn["padding"]), drawn))],
    "random_resized_crop": [({"size": (24, 32)}, lambda boxes, drawn: F.resized_crop(
        boxes, *(drawn[key] for key in PLACE), (24, 32)))],
    "random_horizontal_flip": [({}, lambda boxes, drawn: F.hflip(boxes) if drawn["mirror"] else boxes)],
    "random_vertical_flip": [({}, lambda boxes, drawn: F.vflip(boxes) if drawn["mirror"] else boxes)],
    "random_zoom_out": [({}, zoom_out)],
    "random_iou_crop": [({}, iou_crop)],
    "random_rotation": [
        ({"degrees": 180}, rotate()),
        ({"degrees": (30, 400), "center": (11, 70)}, rotate(center=[11, 70])),
        ({"degrees": 180, "expand": True}, rotate(expand=True)),
        ({"degrees": (90, 90), "expand": True}, rotate(expand=True)),
        ({"degrees": (90, 90)}, rotate()),
        ({"degrees": 180, "expand": True, "center": (11, 70)}, rotate(expand=True, center=[11, 70])),
    ],
    "random_affine": [({"degrees": 0}, affine()), (FREE, affine()),
                      ({**FREE, "center": (5, 9)}, affine(center=[5, 9]))],
}  # fmt: skip

# Ops that move pixels and not boxes, and why.
VOLUME, MIXED = "acts on volumes, which have no boxes", "torchvision refuses boxes, too"
EXCEPTIONS = {
    "pad_volume": VOLUME, "random_balanced_crop": VOLUME, "random_flip_volume": VOLUME, "resample_volume": VOLUME,
    "auto_augment": MIXED, "rand_augment": MIXED, "trivial_augment_wide": MIXED, "aug_mix": MIXED,
    "mixup": MIXED, "cutmix": MIXED,
}  # fmt: skip


def test_every_op_that_moves_pixels_is_compared():
    moving = {name for name, row in TABLE.items() if "moves" in row["flags"]}
    assert moving == {*REFERENCE, *EXCEPTIONS} and not {*REFERENCE} & {*EXCEPTIONS}
    assert not [name for name in EXCEPTIONS if "boxes" in TABLE[name]["kinds"]]


def largest_difference(pipe, op, settings, reference, epochs=1):
    """(greatest distance of a coordinate from torchvision's, number of boxes)"""
    whole = pipe.loader(8, output="numpy", workers=0, collate={"image": "list"})
    before = [(image.shape[-2:], boxes) for batch in whole for image, boxes in zip(batch["image"], batch["boxes"])]
    worst, n = 0.0, 0
    lists = {"image": "list", "boxes": "list", "labels": "list"}
    loader = getattr(pipe, op)(**settings).loader(8, output="numpy", keep_draws=True, collate=lists)
    for _ in range(epochs):
        samples = iter(before)
        for batch in loader.batches():
            for i in range(batch.samples):
                size, boxes = next(samples)
                draws = batch.draws(i)
                given = tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=tuple(size))
                want = reference(given, draws[max(draws)] if draws else None)
                got = batch["boxes"][i]
                assert got.shape == tuple(want.shape)
                if len(got):
                    worst = max(worst, float(numpy.abs(got - want.numpy()).max()))
                    n += len(got)
    return worst, n


@pytest.mark.parametrize("op, settings, reference", [(op, *case) for op, cases in REFERENCE.items() for case in cases])
def test_boxes_are_where_torchvision_has_them(tmp_path, op, settings, reference):
    pipe = drapps.read_coco(cocosets.make_coco(tmp_path, 24), tmp_path).decode()
    worst, n = largest_difference(pipe, op, settings, reference, epochs=3)
    assert n > 100 and worst <= TOLERANCE
