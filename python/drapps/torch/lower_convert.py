"""Rows: between PIL images and tensors, and element types."""

import torch

from drapps import ops
from drapps.torch.lower_rows import IMAGE, PIL, TENSOR, NotNative, is_v2, make, need_tensor, per_channel, row

NATIVE_TYPES = {torch.uint8: "uint8", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


def _need_pil(form):
    if not form.is_pil:
        raise NotNative(f"gets {form}, needs a PIL image")


@row("ToTensor")
def to_tensor(transform, form):
    """uint8 to float32, by division; v2's calls the same function."""
    _need_pil(form)
    if torch.get_default_dtype() is not torch.float32:
        raise NotNative(f"torch's default type is {torch.get_default_dtype()}")
    after = form._replace(kind=TENSOR, dtype="float32", dense=True, since="ToTensor")
    return [make(ops.to_dtype, "float32", scale=True, divide=True)], after


@row("PILToTensor")
def pil_to_tensor(transform, form):
    """The same numbers; v2's leaves tensors alone."""
    if not form.is_pil and is_v2(transform):
        return [], form
    _need_pil(form)
    return [], form._replace(kind=TENSOR, since="PILToTensor")


@row("ToImage", ("v2",))
def to_image(transform, form):
    """The same numbers."""
    return [], form._replace(kind=IMAGE, since="ToImage" if form.is_pil else form.since)


@row("ToPureTensor", ("v2",))
def to_pure_tensor(transform, form):
    """The same numbers; leaves PIL images alone.  Boxes and masks are plain tensors after it."""
    return [], form._replace(kind=form.kind if form.is_pil else TENSOR, pure=bool(form.targets))


@row("ToPILImage")
def to_pil_image(transform, form):
    """The same numbers, for uint8."""
    if form.is_pil or form.is_float or transform.mode not in (None, "L" if form.channels == 1 else "RGB"):
        raise NotNative(f"from {form} with mode={transform.mode!r}")
    return [], form._replace(kind=PIL, dense=False, since="")


@row("ConvertImageDtype")
def convert_image_dtype(transform, form):
    """Scales; v1 by division."""
    need_tensor(form)
    if not form.pure and {"boxes", "masks"}.intersection(form.targets):
        raise NotNative("converts boxes and masks, too; ToDtype does not")
    return convert(transform, form, transform.dtype, scale=True)


@row("ToDtype", ("v2",))
def to_dtype(transform, form):
    """Leaves PIL images alone."""
    if isinstance(transform.dtype, dict):
        raise NotNative("dtype is a dict by type")
    return ([], form) if form.is_pil else convert(transform, form, transform.dtype, scale=bool(transform.scale))


def convert(transform, form, dtype, scale):
    """To another element type; v1 scales by division."""
    if dtype not in NATIVE_TYPES:
        raise NotNative(f"dtype={dtype}")
    if NATIVE_TYPES[dtype] == form.dtype:
        return [], form
    if dtype is torch.uint8:
        raise NotNative("floats to uint8: torch does not define what is outside of the range")
    if form.is_float and form.dtype != "float32":
        raise NotNative(f"{form.dtype} to {dtype}")
    op = make(ops.to_dtype, NATIVE_TYPES[dtype], scale=scale, divide=scale and not is_v2(transform))
    return [op], form._replace(dtype=NATIVE_TYPES[dtype])


@row("Normalize")
def normalize(transform, form):
    """On float tensors."""
    need_tensor(form)
    if not form.is_float:
        raise NotNative("gets integers, needs floats")
    mean, std = per_channel(transform.mean, form, "mean"), per_channel(transform.std, form, "std")
    return [make(ops.normalize, mean, std)], form


@row("Identity", ("v2", "nn"))
def identity(transform, form):
    """Nothing."""
    return [], form
