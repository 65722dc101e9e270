"""Rows: learned and drawn policies, and erasing."""

from drapps import ops
from drapps.torch.lower_geometry import fill_of, interpolation_of
from drapps.torch.lower_rows import NotNative, is_v2, make, need_pil, need_tensor, per_channel, plain, row


def _common(transform, form):
    """fill (None: 0) and interpolation."""
    need_pil(form)
    return {"interpolation": interpolation_of(transform), "fill": fill_of(transform, form)}


@row("AutoAugment")
def auto_augment(transform, form):
    """The three learned policies."""
    common = _common(transform, form)
    policies = transform._policies if is_v2(transform) else transform.policies
    if policies != transform._get_policies(transform.policy):
        raise NotNative("its policies were changed")
    return [make(ops.auto_augment, plain(transform.policy.value, "policy"), **common)], form


@row("RandAugment")
def rand_augment(transform, form):
    """Some primitives at one magnitude."""
    names = ("num_ops", "magnitude", "num_magnitude_bins")
    settings = {name: plain(getattr(transform, name), name) for name in names}
    return [make(ops.rand_augment, **settings, **_common(transform, form))], form


@row("TrivialAugmentWide")
def trivial_augment_wide(transform, form):
    """One primitive."""
    bins = plain(transform.num_magnitude_bins, "num_magnitude_bins")
    return [make(ops.trivial_augment_wide, bins, **_common(transform, form))], form


@row("AugMix")
def aug_mix(transform, form):
    """Nearly torchvision's result; see docs/parity.md."""
    names = ("severity", "mixture_width", "chain_depth", "alpha", "all_ops")
    settings = {name: plain(getattr(transform, name), name) for name in names}
    return [make(ops.aug_mix, **settings, **_common(transform, form))], form


@row("RandomErasing")
def random_erasing(transform, form):
    """On tensors; noise for floats only, since torch wraps it for bytes."""
    need_tensor(form)
    value = None if transform.value in (None, "random") else per_channel(transform.value, form, "value")
    if not form.is_float and (value is None or not all(0 <= v <= 255 for v in value)):
        raise NotNative(f"value={transform.value!r} for bytes")
    settings = {name: plain(getattr(transform, name), name) for name in ("p", "scale", "ratio")}
    return [make(ops.random_erasing, **settings, value=value)], form
