"""Rows: learned and drawn policies, and erasing."""

import math

from drapps import ops
from drapps.torch.lower_geometry import turning
from drapps.torch.lower_rows import NotNative, is_v2, make, need_tensor, per_channel, plain, row, settings


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
