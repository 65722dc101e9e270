"""Rows: the transforms that come with torchvision's weights (`weights.transforms()`)."""

import torch

from drapps import ops
from drapps.torch.lower_convert import convert
from drapps.torch.lower_geometry import interpolation_of
from drapps.torch.lower_rows import TENSOR, make, need_pil, per_channel, row, settings


@row("ImageClassification", ("presets",))
def image_classification(transform, form):
    """Resize, central crop, to float, normalise."""
    need_pil(form)
    size, crop = settings(transform, "resize_size")["resize_size"], settings(transform, "crop_size")["crop_size"]
    to_float, form = convert(transform, form._replace(kind=TENSOR), torch.float32, scale=True)
    return [
        make(ops.resize, size, interpolation=interpolation_of(transform)),
        make(ops.center_crop, crop),
        *to_float,
        make(ops.normalize, per_channel(transform.mean, form, "mean"), per_channel(transform.std, form, "std")),
    ], form
