"""Rows: sizes and places.  What only moves pixels is lowered on any image, what interpolates where its numbers are met."""

import PIL.Image
import torch
from torchvision import tv_tensors
from torchvision.transforms.functional import InterpolationMode, _interpolation_modes_from_int

from drapps import ops
from drapps.torch.lower_rows import (IMAGE, NotNative, backend_of, is_v2, make, need_pil, per_channel, plain, row,
                                     settings)


def interpolation_of(transform):
    """The name of the way to interpolate."""
    value = transform.interpolation
    value = _interpolation_modes_from_int(value) if isinstance(value, int) else value
    name = value.value if isinstance(value, InterpolationMode) else value
    return plain(name, "interpolation")


def scaling(transform, form):
    """What all that resizes takes.  PIL images are always antialiased; bytes are where `antialias` says so."""
    name = interpolation_of(transform)
    if form.is_pil:
        return {"interpolation": name}
    if not name.startswith("nearest"):
        backend_of(transform, form)
        if name not in ("bilinear", "bicubic"):
            need_pil(form)
    return {"interpolation": name, "antialias": bool(transform.antialias), "backend": "tensor"}


def fill_of(transform, form):
    """The values outside of the image, one or one a channel.  Masks have 0 there."""
    fill = transform._fill if is_v2(transform) else {"others": transform.fill}
    if "masks" in form.targets and (value := _fill_for(fill, tv_tensors.Mask)) not in (None, 0):
        raise NotNative(f"fill={value!r} for masks, too, which have 0 natively")
    value = _fill_for(fill, _type_of(form))
    values = per_channel(0 if value is None else value, form, "fill")
    if not all(0 <= value <= 255 for value in values):
        raise NotNative(f"fill={values} is outside of 0 to 255")
    return values


def _type_of(form):
    if form.is_pil:
        return PIL.Image.Image
    return tv_tensors.Image if form.kind == IMAGE else torch.Tensor


def _fill_for(fill, kind):
    """As torchvision looks it up: nothing is asked of a defaultdict."""
    return fill[kind] if kind in fill else fill.get("others")


def turning(transform, form):
    """What all that turns and shears takes: interpolation and fill, on PIL images."""
    need_pil(form)
    if form.targets and getattr(transform, "expand", False):
        raise NotNative("with expand=True, torchvision's boxes may be of another size than their image")
    name = interpolation_of(transform)
    return {"interpolation": "nearest" if name == "nearest-exact" else name, "fill": fill_of(transform, form)}


def border_of(transform, form):
    """fill and padding_mode.  On tensors only what pads with one number is the same in all versions."""
    fill = fill_of(transform, form)
    if form.targets and transform.padding_mode != "constant":
        raise NotNative(f"padding_mode={transform.padding_mode!r} with boxes or masks")
    if not form.is_pil and (transform.padding_mode != "constant" or len(fill) != 1 or fill[0] != int(fill[0])):
        raise NotNative(f"padding_mode={transform.padding_mode!r}, fill={fill} on {form}")
    return {"fill": fill, "padding_mode": plain(transform.padding_mode, "padding_mode")}


@row("Resize")
def resize(transform, form):
    """As scaling says."""
    return [make(ops.resize, **settings(transform, "size", "max_size"), **scaling(transform, form))], form


@row("CenterCrop")
def center_crop(transform, form):
    """Outside of the image: 0."""
    if form.targets:
        raise NotNative("torchvision's boxes are a pixel off where the image is smaller than the crop")
    return [make(ops.center_crop, **settings(transform, "size"))], form


@row("RandomCrop")
def random_crop(transform, form):
    """v2 keeps the padding as left, right, top, bottom."""
    padding = plain(transform.padding, "padding")
    if is_v2(transform) and padding is not None:
        left, right, top, bottom = padding
        padding = [left, top, right, bottom]
    border = border_of(transform, form) if padding is not None or transform.pad_if_needed else {}
    size = plain(transform.size, "size")
    return [make(ops.random_crop, size, padding=padding, pad_if_needed=bool(transform.pad_if_needed), **border)], form


@row("RandomResizedCrop")
def random_resized_crop(transform, form):
    """As scaling says."""
    wanted = settings(transform, "size", "scale", "ratio") | scaling(transform, form)
    return [make(ops.random_resized_crop, **wanted)], form


@row("RandomHorizontalFlip")
def random_horizontal_flip(transform, form):
    """Any image."""
    return [make(ops.random_horizontal_flip, **settings(transform, "p"))], form


@row("RandomVerticalFlip")
def random_vertical_flip(transform, form):
    """Any image."""
    return [make(ops.random_vertical_flip, **settings(transform, "p"))], form


@row("Pad")
def pad(transform, form):
    """All ways on PIL images."""
    return [make(ops.pad, **settings(transform, "padding"), **border_of(transform, form))], form


@row("RandomRotation")
def random_rotation(transform, form):
    """On PIL images."""
    wanted = turning(transform, form) | settings(transform, "degrees", "center")
    return [make(ops.random_rotation, **wanted, expand=bool(transform.expand))], form


@row("RandomAffine")
def random_affine(transform, form):
    """On PIL images."""
    wanted = turning(transform, form) | settings(transform, "degrees", "translate", "scale", "shear", "center")
    return [make(ops.random_affine, **wanted)], form
