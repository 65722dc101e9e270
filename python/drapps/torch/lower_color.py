"""Rows: colours and tones.  On tensors torchvision rounds otherwise: v2's ways are known for bytes."""

from drapps import ops
from drapps.torch.lower_rows import NotNative, backend_of, make, plain, row, settings


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
