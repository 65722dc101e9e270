"""A small PNG writer: 8-bit grey, RGB and RGBA, for pages that show images."""

import base64
import struct
import zlib

_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels: grey, grey + alpha, RGB, RGBA


def encode_png(height, width, channels, pixels):
    """The bytes of a PNG file from rows of uint8 pixels without gaps."""
    row = width * channels
    if len(pixels) != height * row or channels not in _COLOR_TYPES:
        raise ValueError(f"{len(pixels)} bytes are no {height} x {width} image with {channels} channels")
    lines = b"".join(b"\0" + pixels[y * row : (y + 1) * row] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(lines, 6)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_uri(height, width, channels, pixels):
    """The image as an address that a page can hold in itself."""
    return "data:image/png;base64," + base64.b64encode(encode_png(height, width, channels, pixels)).decode()
