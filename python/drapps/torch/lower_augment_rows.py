"""Rows of the lowering table: augmentation policies, detection, presets of weights, and timm."""

import math

import torch
from torchvision import tv_tensors

from drapps import ops
from drapps.torch.lower_datasets import home
from drapps.torch.lower_image_rows import convert, fill_of, interpolation_of, pil_to_tensor, to_tensor, turning
from drapps.torch.lower_rows import (
    TENSOR, NotNative, is_v2, make, need_pil, need_tensor, per_channel, plain, row, settings,
)


# --- augmentation policies ---


@row("AutoAugment")
def auto_augment(transform, form):
    """The three learned policies."""
    common = turning(transform, form)
    policies = transform._policies if is_v2(transform) else transform.policies
    if policies != transform._get_policies(transform.policy):
        raise NotNative("its policies were changed")
    return [make(ops.auto_augment, plain(transform.policy.value, "policy"), **common)], form


@row("RandAugment")
def rand_augment(transform, form):
    """Some primitives at one magnitude."""
    wanted = settings(transform, "num_ops", "magnitude", "num_magnitude_bins") | turning(transform, form)
    return [make(ops.rand_augment, **wanted)], form


@row("TrivialAugmentWide")
def trivial_augment_wide(transform, form):
    """One primitive."""
    wanted = settings(transform, "num_magnitude_bins") | turning(transform, form)
    return [make(ops.trivial_augment_wide, **wanted)], form


@row("AugMix")
def aug_mix(transform, form):
    """Nearly torchvision's result; see docs/parity.md."""
    wanted = settings(transform, "severity", "mixture_width", "chain_depth", "alpha", "all_ops")
    return [make(ops.aug_mix, **wanted, **turning(transform, form))], form


@row("RandomErasing", ("v1", "v2", "timm erasing"))
def random_erasing(transform, form):
    """On tensors; noise for floats only, since torch wraps it for bytes."""
    need_tensor(form)
    if type(transform).__module__.startswith("timm."):
        return _timms_erasing(transform, form)
    value = None if transform.value in (None, "random") else per_channel(transform.value, form, "value")
    if not form.is_float and (value is None or not all(0 <= v <= 255 for v in value)):
        raise NotNative(f"value={transform.value!r} for bytes")
    return [make(ops.random_erasing, **settings(transform, "p", "scale", "ratio"), value=value)], form


def _timms_erasing(transform, form):
    """Draws one rectangle as torchvision does, from the same distributions."""
    wanted = settings(transform, "probability", "min_area", "max_area", "log_aspect_ratio", "min_count", "max_count")
    if (wanted["min_count"], wanted["max_count"]) != (1, 1):
        raise NotNative("may erase several rectangles")
    if str(transform.device) != "cpu":
        raise NotNative(f"makes its noise on the device {transform.device}")
    if transform.per_pixel and form.dtype != "float32":
        raise NotNative(f"makes noise of {form.dtype}")
    if transform.rand_color and not transform.per_pixel:
        raise NotNative("draws one colour for a rectangle")
    ratio = [math.exp(bound) for bound in wanted["log_aspect_ratio"]]
    return [make(ops.random_erasing, p=wanted["probability"], scale=[wanted["min_area"], wanted["max_area"]],
                 ratio=ratio, value=None if transform.per_pixel else [0])], form  # fmt: skip


# --- boxes and masks of detection ---


def need_targets(form, *keys):
    """NotNative where these are not among the target's keys, or are plain tensors already."""
    missing = [key for key in keys if key not in form.targets]
    if missing:
        raise NotNative(f"needs {' and '.join(missing)} in the target")
    if form.pure:
        raise NotNative("stands after ToPureTensor, where there are no boxes any more")


@row("RandomZoomOut", ("v2",))
def random_zoom_out(transform, form):
    """On bytes."""
    if form.is_float:
        raise NotNative(f"gets {form}: native for bytes only")
    wanted = settings(transform, "side_range", "p")
    return [make(ops.random_zoom_out, fill=fill_of(transform, form), **wanted)], form


@row("RandomIoUCrop", ("v2",))
def random_iou_crop(transform, form):
    """Any image."""
    need_targets(form, "boxes")
    wanted = settings(transform, "min_scale", "max_scale", "min_aspect_ratio", "max_aspect_ratio", "trials")
    return [make(ops.random_iou_crop, sampler_options=settings(transform, "options")["options"], **wanted)], form


@row("SanitizeBoundingBoxes", ("v2",))
def sanitize_bounding_boxes(transform, form):
    """With the labels of the target."""
    need_targets(form, "boxes", "labels")
    if transform._labels_getter is not home("torchvision.transforms.v2._utils", "_find_labels_default_heuristic"):
        raise NotNative("has a labels_getter of its own")
    return [make(ops.sanitize_bounding_boxes, **settings(transform, "min_size", "min_area"))], form


@row("ClampBoundingBoxes", ("v2",))
def clamp_bounding_boxes(transform, form):
    """Soft and hard clamping differ for rotated boxes alone."""
    if transform.clamping_mode not in ("auto", "soft", "hard"):
        raise NotNative(f"clamping_mode={transform.clamping_mode!r}")
    return ([make(ops.clamp_bounding_boxes)] if "boxes" in form.targets and not form.pure else []), form


@row("ConvertBoundingBoxFormat", ("v2",))
def convert_bounding_box_format(transform, form):
    """Boxes are in this format already."""
    if transform.format not in ("XYXY", tv_tensors.BoundingBoxFormat.XYXY):
        raise NotNative(f"format={transform.format!r}")
    return [], form


# --- transforms that come with torchvision's weights ---


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


# --- timm's own transforms.  timm draws from Python's `random`; the distributions are the same ---


class _Mode:
    """Where interpolation_of looks for a way to interpolate."""

    def __init__(self, interpolation):
        self.interpolation = interpolation


@row("RandomResizedCropAndInterpolation", ("timm",))
def random_resized_crop_and_interpolation(transform, form):
    """One of several ways to interpolate, each as likely, or always the same."""
    need_pil(form)
    wanted, modes = settings(transform, "size", "scale", "ratio"), transform.interpolation
    modes = modes if isinstance(modes, (tuple, list)) else [modes]
    crops = [make(ops.random_resized_crop, **wanted, interpolation=interpolation_of(_Mode(mode))) for mode in modes]
    return crops if len(crops) == 1 else [make(ops.random_choice, crops)], form


@row("MaybeToTensor", ("timm",))
def maybe_to_tensor(transform, form):
    """Leaves tensors alone."""
    return to_tensor(transform, form) if form.is_pil else ([], form)


@row("MaybePILToTensor", ("timm",))
def maybe_pil_to_tensor(transform, form):
    """Leaves tensors alone."""
    return pil_to_tensor(transform, form) if form.is_pil else ([], form)
