"""Draws a sample as HTML: its image, scaled for a page, with masks, boxes, key points and class names on it."""

import base64
import html
import io
import struct
import zlib

import numpy

from drapps import _core

SHOWN_SIDE = 224  # longest side of an image on the page, in pixels
EXACT_SIDE = 96  # images up to this side are not scaled, and shown enlarged
JPEG_QUALITY = 85
IGNORED = 255  # the class of a mask that means "none"
COLORS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#f032e6", "#808000", "#9a6324", "#000075")
_PNG_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels: grey, grey + alpha, RGB, RGBA
_RGB = numpy.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in COLORS])

STYLE = """<style>
.drapps-preview { display: grid; grid-template-columns: repeat(auto-fill, minmax(480px, 1fr)); gap: 16px }
.drapps-preview figure { margin: 0; padding: 12px; background: #fff; border: 1px solid #ddd; border-radius: 6px }
.drapps-preview .pair { display: flex; gap: 8px; align-items: start }
.drapps-preview .shown { position: relative; line-height: 0 }
.drapps-preview .shown img { display: block; margin: 0; max-width: none }
.drapps-preview .exact img { image-rendering: pixelated }
.drapps-preview svg { position: absolute; left: 0; top: 0; overflow: hidden }
.drapps-preview svg text { font: bold 11px system-ui, sans-serif; fill: #fff; paint-order: stroke }
.drapps-preview figcaption { margin-top: 8px; font-size: 12px; overflow-wrap: anywhere; color: #555 }
</style>
"""


def draw(fields, kinds, name_of):
    """Return the HTML of a sample.  kinds: the kind of each field; name_of: a function from class number to name."""
    image = _as_bytes(fields["image"])
    height, width = image.shape[:2]
    scale = _scale(height, width)
    shown = _shrunk(image, scale)
    marks = []
    for name, value in fields.items():
        kind = kinds.get(name)
        if kind in ("mask", "masks"):
            shown = _blend(shown, _classes(value, kind))
        elif kind == "boxes":
            marks += _boxes(value, _labels(fields, kinds, len(value)), scale, name_of)
        elif kind == "keypoints":
            marks += _points(value, scale)
    size = f'width="{round(width * scale)}" height="{round(height * scale)}"'
    over = f"<svg {size}>{''.join(marks)}</svg>" if marks else ""
    kept = " exact" if scale >= 1 else ""
    return f'<div class="shown{kept}"><img src="{_encode(shown)}" {size} alt="">{over}</div>'


# --- images ---


def _as_bytes(image):
    """Return the image as uint8 (height, width, channels)."""
    image = numpy.asarray(image)
    if image.ndim not in (2, 3):
        raise _core.ArgumentError(f"preview: an image has the shape {image.shape}; is a .decode() missing?")
    image = image[:, :, None] if image.ndim == 2 else image
    if image.dtype == numpy.uint16:
        image = image >> 8
    elif image.dtype != numpy.uint8:
        image = numpy.rint(numpy.clip(image.astype(numpy.float32), 0, 1) * 255)
    return image.astype(numpy.uint8)


def _scale(height, width):
    """Return the number of page pixels per image pixel: an integer for small images."""
    side = max(height, width, 1)
    return SHOWN_SIDE / side if side > SHOWN_SIDE else SHOWN_SIDE // side if side <= EXACT_SIDE else 1


def _shrunk(image, scale):
    """Return the image reduced by averaging; enlarging is left to the page."""
    for axis in (0, 1) if scale < 1 else ():
        starts = _starts(image.shape[axis], scale)
        counts = numpy.diff(starts, append=image.shape[axis]).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        image = numpy.add.reduceat(image, starts, axis=axis, dtype=numpy.float32) / counts
    return numpy.rint(image).astype(numpy.uint8)


def _starts(side, scale):
    shown = max(1, round(side * scale))
    return numpy.arange(shown) * side // shown


def _encode(image):
    """Return the image as a data URI: a JPEG if it is large and Pillow is installed, else a PNG."""
    height, width, channels = image.shape
    if channels not in (1, 2, 3, 4):
        raise _core.ArgumentError(f"preview: an image must have 1 to 4 channels, got {channels}")
    if channels in (1, 3) and max(height, width) > EXACT_SIDE:
        try:
            from PIL import Image
        except ImportError:
            pass
        else:
            file = io.BytesIO()
            Image.fromarray(image[:, :, 0] if channels == 1 else image).save(file, "JPEG", quality=JPEG_QUALITY)
            return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
    return data_uri(height, width, channels, numpy.ascontiguousarray(image).tobytes())


# --- what belongs to an image ---


def _classes(mask, kind):
    """Return a class number for each pixel (height, width); 0: no class."""
    mask = numpy.asarray(mask)
    if kind == "mask":
        return mask if mask.ndim == 2 else mask[:, :, 0]
    numbers = numpy.zeros(mask.shape[1:], numpy.int64)
    for i, one in enumerate(mask, start=1):
        numbers[one != 0] = (i - 1) % (IGNORED - 1) + 1
    return numbers


def _blend(image, classes):
    """Return the image with the colour of each class blended in."""
    rows, columns = (numpy.arange(n) * side // n for n, side in zip(image.shape[:2], classes.shape))
    classes = classes[rows][:, columns].astype(numpy.int64)
    marked = (classes != 0) & (classes != IGNORED)
    image = numpy.repeat(image[:, :, :1], 3, axis=2) if image.shape[2] < 3 else image.copy()
    image[marked, :3] = (image[marked, :3].astype(numpy.int64) + _RGB[(classes[marked] - 1) % len(COLORS)]) // 2
    return image


def _labels(fields, kinds, n):
    """Return a class number for each box, or None if the sample has none."""
    for name, value in fields.items():
        if name == "labels" or (kinds.get(name) == "labels" and "labels" not in fields):
            value = numpy.asarray(value)
            if value.shape == (n,) and value.dtype.kind in "iu":
                return value.tolist()
    return [None] * n


def _boxes(boxes, labels, scale, name_of):
    for (x0, y0, x1, y1), label in zip(numpy.asarray(boxes, dtype=numpy.float64) * scale, labels):
        color = COLORS[(0 if label is None else label) % len(COLORS)]
        yield (f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{max(x1 - x0, 0):.1f}" height="{max(y1 - y0, 0):.1f}" '
               f'fill="none" stroke="{color}" stroke-width="2"/>')  # fmt: skip
        if label is not None:
            yield (f'<text x="{x0 + 3:.1f}" y="{max(y0 + 11, 11):.1f}" stroke="{color}" stroke-width="3">'
                   f"{html.escape(name_of(label))}</text>")  # fmt: skip


def _points(points, scale):
    for x, y in numpy.asarray(points, dtype=numpy.float64).reshape(-1, 2) * scale:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLORS[0]}" stroke="#fff"/>'


def encode_png(height, width, channels, pixels):
    """Return a PNG file (8-bit gray, RGB or RGBA) of contiguous rows of uint8 pixels."""
    row = width * channels
    if len(pixels) != height * row or channels not in _PNG_COLOR_TYPES:
        raise ValueError(
            f"pixels must be the bytes of a {height} x {width} image with {channels} channels, got {len(pixels)} bytes"
        )
    lines = b"".join(b"\0" + pixels[y * row : (y + 1) * row] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, _PNG_COLOR_TYPES[channels], 0, 0, 0)
    chunks = (_png_chunk(b"IHDR", header), _png_chunk(b"IDAT", zlib.compress(lines, 6)), _png_chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_uri(height, width, channels, pixels):
    """Return the image as a data: URI."""
    return "data:image/png;base64," + base64.b64encode(encode_png(height, width, channels, pixels)).decode()
