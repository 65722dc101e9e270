"""Rows of the lowering table: conversions, colors and geometry of images."""

from PIL import Image
import torch
from torchvision import tv_tensors
from torchvision.transforms.functional import InterpolationMode, _interpolation_modes_from_int

from drapps import ops
from drapps.torch.lower_rows import (
    IMAGE, PIL, TENSOR, NotNative, backend_of, is_v2, make, need_pil, need_tensor, per_channel, plain, row,
    settings,
)

# --- types and layouts ---

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


# --- colors ---


def _need_bytes(form):
    if form.is_float:
        raise NotNative(f"gets {form}: native for bytes only")


@row("ColorJitter")
def color_jitter(transform, form):
    """Ranges of factors, or None."""
    wanted = settings(transform, "brightness", "contrast", "saturation", "hue") | backend_of(transform, form)
    return [make(ops.color_jitter, **wanted)], form


@row("RandomPhotometricDistort", ("v2",))
def random_photometric_distort(transform, form):
    """Ranges of factors, and the chance of each part."""
    wanted = settings(transform, "brightness", "contrast", "saturation", "hue", "p") | backend_of(transform, form)
    return [make(ops.random_photometric_distort, **wanted)], form


@row("Grayscale")
def grayscale(transform, form):
    """To 1 or 3 channels."""
    backend = backend_of(transform, form)
    channels = plain(transform.num_output_channels, "num_output_channels")
    if channels not in (1, 3):
        raise NotNative(f"num_output_channels={channels}")
    return [make(ops.grayscale, channels, **backend)], form._replace(channels=channels)


@row("RandomGrayscale")
def random_grayscale(transform, form):
    """Keeps the number of channels."""
    return [make(ops.random_grayscale, **settings(transform, "p"), **backend_of(transform, form))], form


@row("RGB", ("v2",))
def rgb(transform, form):
    """Nothing, where there are three channels."""
    if form.channels == 3:
        return [], form
    _need_bytes(form)
    return [make(ops.grayscale, 3)], form._replace(channels=3)


@row("GaussianBlur")
def gaussian_blur(transform, form):
    """Within one step of torchvision's result, which it computes on tensors always; see docs/parity.md."""
    _need_bytes(form)
    return [make(ops.gaussian_blur, **settings(transform, "kernel_size", "sigma"))], form


@row("RandomInvert")
def random_invert(transform, form):
    """255 - x."""
    _need_bytes(form)
    return [make(ops.random_invert, **settings(transform, "p"))], form


@row("RandomPosterize")
def random_posterize(transform, form):
    """Bits of bytes."""
    _need_bytes(form)
    return [make(ops.random_posterize, **settings(transform, "bits", "p"))], form


@row("RandomSolarize")
def random_solarize(transform, form):
    """A threshold for bytes."""
    _need_bytes(form)
    wanted = settings(transform, "threshold", "p")
    if not form.is_pil and wanted["threshold"] > 255:
        raise NotNative(f"threshold={wanted['threshold']} on {form}")
    return [make(ops.random_solarize, **wanted)], form


@row("RandomAdjustSharpness")
def random_adjust_sharpness(transform, form):
    """Keeps the border."""
    wanted = settings(transform, "sharpness_factor", "p") | backend_of(transform, form)
    return [make(ops.random_adjust_sharpness, **wanted)], form


@row("RandomAutocontrast")
def random_autocontrast(transform, form):
    """By the least and the largest value of each channel."""
    return [make(ops.random_autocontrast, **settings(transform, "p"), **backend_of(transform, form))], form


@row("RandomEqualize")
def random_equalize(transform, form):
    """By the histogram of each channel, in whole numbers."""
    _need_bytes(form)
    return [make(ops.random_equalize, **settings(transform, "p"))], form


# --- geometry ---


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
        return Image.Image
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
