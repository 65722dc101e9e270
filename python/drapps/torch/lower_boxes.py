"""Rows: what looks at boxes.  On images without a target torchvision raises at them, and so they stay in Python."""

from torchvision import tv_tensors

from drapps import ops
from drapps.torch.lower_families import home
from drapps.torch.lower_geometry import fill_of
from drapps.torch.lower_rows import NotNative, make, row, settings


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
