"""Rows: colours and tones.  On tensors torchvision rounds otherwise, but for what only maps bits."""

from drapps import ops
from drapps.torch.lower_rows import NotNative, make, need_pil, plain, row, settings


def _need_bytes(form):
    if form.is_float:
        raise NotNative(f"gets {form}: native for bytes only")


@row("ColorJitter")
def color_jitter(transform, form):
    """Ranges of factors, or None."""
    need_pil(form)
    return [make(ops.color_jitter, **settings(transform, "brightness", "contrast", "saturation", "hue"))], form


@row("Grayscale")
def grayscale(transform, form):
    """To 1 or 3 channels."""
    need_pil(form)
    channels = plain(transform.num_output_channels, "num_output_channels")
    if channels not in (1, 3):
        raise NotNative(f"num_output_channels={channels}")
    return [make(ops.grayscale, channels)], form._replace(channels=channels)


@row("RandomGrayscale")
def random_grayscale(transform, form):
    """Keeps the number of channels."""
    need_pil(form)
    return [make(ops.random_grayscale, **settings(transform, "p"))], form


@row("RGB", ("v2",))
def rgb(transform, form):
    """Nothing, where there are three channels."""
    if form.channels == 3:
        return [], form
    need_pil(form)
    return [make(ops.grayscale, 3)], form._replace(channels=3)


@row("GaussianBlur")
def gaussian_blur(transform, form):
    """Within one step of torchvision's result; see docs/parity.md."""
    need_pil(form)
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
    """On PIL images."""
    need_pil(form)
    return [make(ops.random_adjust_sharpness, **settings(transform, "sharpness_factor", "p"))], form


@row("RandomAutocontrast")
def random_autocontrast(transform, form):
    """On PIL images."""
    need_pil(form)
    return [make(ops.random_autocontrast, **settings(transform, "p"))], form


@row("RandomEqualize")
def random_equalize(transform, form):
    """On PIL images."""
    need_pil(form)
    return [make(ops.random_equalize, **settings(transform, "p"))], form
