"""Rows: timm's own transforms.  timm draws from Python's `random`; the distributions are the same."""

from drapps import ops
from drapps.torch.lower_convert import pil_to_tensor, to_tensor
from drapps.torch.lower_geometry import interpolation_of
from drapps.torch.lower_rows import make, need_pil, row, settings


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
