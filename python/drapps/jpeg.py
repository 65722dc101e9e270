"""The JPEG decoder by itself: encoded bytes to pixels, whole images or crops."""

from operator import index as _to_int
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from drapps import _core
from drapps._core import JpegIndex

if TYPE_CHECKING:
    import numpy
    import numpy.typing

CROP = "crop must be four ints: x, y, width, height"
DECODERS = ("auto", "libjpeg")
_LARGEST = 2**31  # above the side of any image

_idle: list[_core.JpegDecoder] = []  # decoders that no thread is using; append and pop are atomic


class JpegHeader(NamedTuple):
    """The header of a JPEG."""

    width: int
    height: int
    stored: str  # "YCbCr 4:2:0", "gray", ...
    decoder: str  # what decodes it: "drapps", or libjpeg-turbo with its version


def decode_jpeg(
    data: Any,
    crop: tuple[int, int, int, int] | None = None,
    *,
    decoder: Literal["auto", "libjpeg"] = "auto",
    index: JpegIndex | None = None,
) -> "numpy.typing.NDArray[numpy.uint8]":
    """Decode a JPEG to a uint8 NumPy array (height, width, 3), equal to the result of Pillow's convert("RGB").

    data: the encoded bytes: bytes, bytearray, memoryview, a one-dimensional uint8 NumPy array or torch tensor.
    crop: (x, y, width, height) in pixels, inside the image.  The pixels equal those of decoding everything and slicing.
    decoder: "auto": drapps' own decoder, and libjpeg-turbo for files that it does not support; "libjpeg": always
        libjpeg-turbo.  The pixels are the same.
    index: a JpegIndex of this file.  It is filled while decoding and makes further crops of the file faster.

    Several threads may decode at once: the GIL is released.  Raises FormatError for damaged data, ArgumentError for a
    crop that leaves the image, LimitError for an image that is too large; each is a ValueError.

    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (64, 48), (255, 128, 0)).save(file, "JPEG")
    >>> drapps.decode_jpeg(file.getvalue()).shape
    (48, 64, 3)
    >>> index = drapps.JpegIndex()
    >>> drapps.decode_jpeg(file.getvalue(), crop=(10, 20, 30, 4), index=index).shape
    (4, 30, 3)
    """
    import numpy

    engine = _take()
    try:
        pixels, height, width = engine.decode(_encoded(data), _rectangle(crop), index, _by_libjpeg(decoder))
    finally:
        _idle.append(engine)
    return numpy.frombuffer(pixels, numpy.uint8).reshape(height, width, 3)


def jpeg_header(data: Any, *, decoder: Literal["auto", "libjpeg"] = "auto") -> JpegHeader:
    """Return size, kind and decoder of a JPEG from its header.

    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (64, 48)).save(file, "JPEG")
    >>> drapps.jpeg_header(file.getvalue())[:3]
    (64, 48, 'gray')
    """
    engine = _take()
    try:
        return JpegHeader(*engine.header(_encoded(data), _by_libjpeg(decoder)))
    finally:
        _idle.append(engine)


def _take() -> _core.JpegDecoder:
    """Return an idle decoder, or a new one: each decodes for one thread at a time."""
    try:
        return _idle.pop()
    except IndexError:
        return _core.JpegDecoder()


def _by_libjpeg(decoder: str) -> bool:
    if decoder not in DECODERS:
        raise _core.ArgumentError(f"decoder must be {' or '.join(map(repr, DECODERS))}, got {decoder!r}")
    return decoder == "libjpeg"


def _encoded(data: Any) -> Any:
    """Return the argument as an object with contiguous bytes."""
    if isinstance(data, (bytes, bytearray)):
        return data
    if isinstance(data, str):
        raise TypeError(f"data must be the encoded bytes, got the str {data[:40]!r}; read the file first")
    if hasattr(data, "numpy") and hasattr(data, "detach"):  # a torch tensor, which has no buffer of its own
        data = data.detach().numpy()
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"data must be bytes or a one-dimensional uint8 array, got {type(data).__name__}") from None
    if view.ndim != 1 or view.itemsize != 1:
        raise TypeError("data must be bytes or a one-dimensional uint8 array, "
                        f"got an array of shape {view.shape} and type {view.format!r}")
    return view if view.c_contiguous else bytes(view)


def _rectangle(crop: Any) -> tuple[int, ...] | None:
    if crop is None:
        return None
    try:
        numbers = tuple(_to_int(number) for number in crop)
    except TypeError:
        raise TypeError(f"{CROP}, got {crop!r}") from None
    if len(numbers) != 4:
        raise _core.ArgumentError(f"{CROP}, got {crop!r}")
    if any(abs(number) >= _LARGEST for number in numbers):
        raise _core.ArgumentError(f"crop must be inside the image, got {crop!r}")
    return numbers
