"""Rows: learned and drawn policies, and erasing."""

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


@row("RandomErasing")
def random_erasing(transform, form):
    """On tensors; noise for floats only, since torch wraps it for bytes."""
    need_tensor(form)
    value = None if transform.value in (None, "random") else per_channel(transform.value, form, "value")
    if not form.is_float and (value is None or not all(0 <= v <= 255 for v in value)):
        raise NotNative(f"value={transform.value!r} for bytes")
    return [make(ops.random_erasing, **settings(transform, "p", "scale", "ratio"), value=value)], form
