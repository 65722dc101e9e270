"""What Pillow knows of an image file beside its pixels: Python code after native ops may ask for it, EXIF above all."""

import io

from PIL import Image

from drapps.torch.lower_rows import NotNative


def read_info(data):
    """Image.info as it is once Pillow has loaded the file and converted it to RGB, from the header alone.

    NotNative where loading would change it: Pillow then has to do it all.
    """
    with Image.open(io.BytesIO(data)) as image:
        is_whole = image.format in ("JPEG", "MPO", "BMP", "PPM") or (image.format == "PNG" and _ends_with_pixels(data))
        if not is_whole or "transparency" in image.info:
            raise NotNative(f"{image.format}: loading it changes its info")
        return dict(image.info)


def _ends_with_pixels(data):
    """Whether nothing but the end mark comes after the pixels of a PNG file; texts and EXIF may stand there."""
    start = data.rfind(b"IDAT")
    end = start + 8 + int.from_bytes(data[max(start - 4, 0) : max(start, 0)], "big")
    return data[end + 4 : end + 8] == b"IEND"
