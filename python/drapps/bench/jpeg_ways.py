"""The JPEG decoders of `drapps bench jpeg`: one class each, one row in TABLE.

A way is opened in its own process with the encoded files; then decode(i, box) returns the RGB pixels of file i, or of
its box, as an HWC array.  Libraries without cropping decode the whole image and slice.
"""

from collections import namedtuple

from .peer import installed


class Way:
    """A decoder with the files in its preferred form; the conversion is not measured."""

    def __init__(self, files):
        self.files = files

    def version(self):
        raise NotImplementedError

    def decode(self, i, box):
        raise NotImplementedError


def cut(pixels, box):
    """Return a part of a decoded image, without a copy."""
    if box is None:
        return pixels
    x, y, w, h = box
    return pixels[y:y + h, x:x + w]


class Drapps(Way):
    """drapps' own decoder without an index."""

    options = {"decoder": "auto"}

    def __init__(self, files):
        from drapps import decode_jpeg

        super().__init__(files)
        self.function = decode_jpeg

    def version(self):
        import drapps

        return f"drapps {drapps.__version__}"

    def decode(self, i, box):
        return self.function(self.files[i], box, **self.options)


class Libjpeg(Drapps):
    """drapps with libjpeg-turbo, which skips rows and columns outside of a crop."""

    options = {"decoder": "libjpeg"}

    def version(self):
        import drapps

        return drapps.jpeg_header(self.files[0], decoder="libjpeg").decoder


class Indexed(Drapps):
    """drapps' own decoder with a filled index of each file."""

    def __init__(self, files):
        from drapps import JpegIndex

        super().__init__(files)
        self.indexes = [JpegIndex() for _ in files]
        for i in range(len(files)):
            self.decode(i, None)

    def decode(self, i, box):
        return self.function(self.files[i], box, index=self.indexes[i])


class Simplejpeg(Way):
    def __init__(self, files):
        from simplejpeg import decode_jpeg

        super().__init__(files)
        self.function = decode_jpeg

    def version(self):
        return installed("simplejpeg")

    def decode(self, i, box):
        return cut(self.function(self.files[i], "RGB"), box)


class OpenCV(Way):
    def __init__(self, files):
        import cv2
        import numpy

        super().__init__([numpy.frombuffer(data, numpy.uint8) for data in files])
        cv2.setNumThreads(0)
        self.imdecode = cv2.imdecode
        self.flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION

    def version(self):
        import cv2

        return f"OpenCV {cv2.__version__}"

    def decode(self, i, box):
        return cut(self.imdecode(self.files[i], self.flags), box)


class Pillow(Way):
    def __init__(self, files):
        import numpy
        from PIL import Image

        super().__init__(files)
        self.open, self.asarray = Image.open, numpy.asarray

    def version(self):
        from PIL import features

        return f"{installed('pillow')} (libjpeg-turbo {features.version('libjpeg_turbo')})"

    def decode(self, i, box):
        from io import BytesIO

        with self.open(BytesIO(self.files[i])) as image:
            if box is not None:
                x, y, w, h = box
                image = image.crop((x, y, x + w, y + h))
            return self.asarray(image.convert("RGB"))


class Torchvision(Way):
    def __init__(self, files):
        from .standins import import_torchvision

        import_torchvision()
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg

        torch.set_num_threads(1)
        super().__init__([torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in files])
        self.function, self.mode = decode_jpeg, ImageReadMode.RGB
        self.decode(0, None)  # raises if the image functions of the wheel cannot be loaded

    def version(self):
        return installed("torchvision", "torch")

    def decode(self, i, box):
        return cut(self.function(self.files[i], self.mode).permute(1, 2, 0), box)


# environment: that of `drapps bench setup`, used if this interpreter lacks the library; "": none.
Row = namedtuple("Row", "name title environment way")

BASELINE = "libjpeg"
TABLE = (
    Row("libjpeg", "drapps, libjpeg-turbo", "", Libjpeg),
    Row("drapps", "drapps", "", Drapps),
    Row("index", "drapps, with index", "", Indexed),
    Row("simplejpeg", "simplejpeg", "torch", Simplejpeg),
    Row("opencv", "OpenCV", "torch", OpenCV),
    Row("pillow", "Pillow", "torch", Pillow),
    Row("torchvision", "torchvision.io", "torch", Torchvision),
)
PEERS = tuple(row.name for row in TABLE if row.environment)


def row(name):
    for r in TABLE:
        if r.name == name:
            return r
    raise SystemExit(f"decoder must be one of {', '.join(r.name for r in TABLE)}, got {name!r}")
