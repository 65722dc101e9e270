"""Compression of bytes and arrays, by the library libdrapps-codec (drapps/codec.h).

    frame = drapps.codec.encode(array, "shuffle+zstd")
    array = drapps.codec.decode(frame)

A codec is named by a spec: stages joined by "+", each with an optional parameter after ":".  codecs() lists the stages;
choose() tells which spec suits some data.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from drapps import _core
from drapps._core import CodecDict

if TYPE_CHECKING:
    import numpy

CLASSES = ("media", "text", "tokens", "ints", "floats", "pixels", "other")
LEAST_SAMPLES = 7  # that Zstandard trains a dictionary from
_KINDS: dict[str, Callable[[bytearray], bytes | str]] = {"bytes": bytes, "text": lambda data: data.decode()}


class FrameInfo(NamedTuple):
    """What the header of a frame says."""

    dtype: str
    shape: tuple[int, ...]
    kind: str  # "bytes", "text" or "array" ...
    raw_bytes: int
    spec: str
    dictionary_id: int  # 0: it needs none
    lossless: bool
    max_abs_error: float  # lossy: the error is at most the larger of this
    max_rel_error: float  # and this times the magnitude of the original


class Speed(NamedTuple):
    """How well a codec does on a class of data."""

    encode_bytes_per_s: float
    decode_bytes_per_s: float
    ratio: float
    measured: bool  # on this machine; else a built-in figure


class Choice(NamedTuple):
    """A choice and what it was made by."""

    data_class: str
    spec: str
    speed: Speed
    seconds: float  # predicted for reading and decoding the whole array


def codecs() -> list[dict[str, Any]]:
    """Every stage of this build: name, kind, summary, types, library, parameter, extension, error.

    >>> [row["name"] for row in codecs() if row["kind"] == "filter"]
    ['shuffle', 'bitshuffle', 'delta']
    """
    return json.loads(_core.codec_stages_json())


def encode(data: Any, spec: str, *, dictionary: CodecDict | None = None) -> bytes:
    """Encode bytes, a str or an array (NumPy, or what has the buffer protocol) into a frame, which describes itself.

    Lossless unless the spec has a lossy stage ("bf16", "fp16", "int8").

    >>> frame = encode(b"hello " * 100, "zstd")
    >>> len(frame) < 100, decode(frame) == b"hello " * 100
    (True, True)
    """
    return _core.open_codec(spec, dictionary).encode(*_described(data))


def peek(frame: Any) -> FrameInfo:
    """Read the header of a frame; nothing is decoded."""
    return FrameInfo(*_core.codec_peek(frame))


def decode(frame: Any, *, dictionary: CodecDict | None = None) -> Any:
    """Decode a frame: bytes, str or a NumPy array, as they were encoded."""
    info = peek(frame)
    if info.kind in _KINDS:
        data = bytearray(info.raw_bytes)
        _core.codec_decode(frame, data, dictionary)
        return _KINDS[info.kind](data)
    array = _empty(info)
    _core.codec_decode(frame, array.reshape(-1).view("uint8"), dictionary)
    return array


def compress(data: Any, spec: str = "zstd", *, dictionary: CodecDict | None = None) -> bytes:
    """Compress bytes as the reference tool does: "zstd" gives the bytes of a .zst file, "lz4" .lz4, "snappy" .sz."""
    return _core.open_codec(spec, dictionary).compress(data)


def decompress(file: Any, *, dictionary: CodecDict | None = None, max_size: int = 1 << 34) -> bytes:
    """Decompress the bytes of a .zst, .lz4 or .sz file, of at most max_size bytes of content."""
    return _core.codec_decompress(file, dictionary, max_size)


def train_dictionary(samples: Any, max_size: int = 112640) -> CodecDict:
    """Train a Zstandard dictionary from some hundreds of samples of one kind: bytes objects of up to some 16 KB."""
    samples = [bytes(sample) for sample in samples]
    if len(samples) < LEAST_SAMPLES:
        least = f"at least {LEAST_SAMPLES} samples, better some hundreds"
        raise _core.ArgumentError(f"train_dictionary: needs {least}, got {len(samples)}")
    return _core.train_codec_dict(b"".join(samples), tuple(map(len, samples)), max_size)


def open_dictionary(data: Any) -> CodecDict:
    """Make a dictionary from the bytes of one: bytes(dictionary), or a file of `zstd --train`."""
    return _core.open_codec_dict(data)


def choose(data: Any, *, read_bytes_per_s: float = 500e6, decode_cores: float = 1, encode_weight: float = 0,
           space_weight: float = 0.05) -> Choice:
    """Choose the codec for some data: the one with the least time to read and decode it, reading and decoding at once.

    read_bytes_per_s: how fast encoded bytes arrive.
    decode_cores: cores that decode beside reading.
    encode_weight: how much a second of encoding counts; 0 where data is written once and read often.
    space_weight: 0 to 1: prefers smaller results among codecs of about the same speed.
    """
    criteria = (read_bytes_per_s, decode_cores, encode_weight, space_weight)
    view, dtype, shape, kind = _described(data)
    data_class, spec, speed, seconds = _core.codec_choose(view, dtype, shape, kind, criteria)
    return Choice(data_class, spec, Speed(*speed), seconds)


def measured(spec: str, data_class: str) -> Speed:
    """Get the figures of a codec for a class of data: those kept on this machine, else built-in ones."""
    return Speed(*_core.codec_measured(spec, data_class))


def measure(data: Any, spec: str, *, seconds: float = 0.2, keep: str | None = None) -> Speed:
    """Measure a codec on some data for so long.  keep: a class of data whose figures these become on this machine."""
    view, dtype, shape, kind = _described(data)
    speed = Speed(*_core.open_codec(spec).measure(view, dtype, shape, kind, int(seconds * 1e9)))
    if keep is not None:
        _core.codec_keep(spec, keep, speed[:3])
    return speed


def candidates(data_class: str, dtype: str = "uint8") -> list[str]:
    """List the codecs worth trying for a class of data and an element type, the fastest first."""
    return _core.codec_candidates(data_class, dtype)


def _described(data):
    """(buffer, dtype, shape, kind) of what is to be encoded."""
    if isinstance(data, str):
        data = data.encode()
        return data, "uint8", (len(data),), "text"
    if isinstance(data, bytes | bytearray | memoryview) and memoryview(data).format in ("B", "b", "c"):
        view = memoryview(data).cast("B")
        return view, "uint8", (len(view),), "bytes"
    import numpy

    array = numpy.asarray(data)
    dense = numpy.ascontiguousarray(array)  # makes scalars one-dimensional
    if array.dtype.name in ("uint32", "uint64"):
        signed = array.dtype.name[1:]
        raise TypeError(f"arrays of {array.dtype.name} are not supported; view them as {signed}: .view({signed!r})")
    return dense.reshape(-1).view("uint8"), array.dtype.name, array.shape, "array"


def _empty(info: FrameInfo) -> "numpy.ndarray[Any, Any]":
    import numpy

    if info.dtype == "bfloat16":
        import ml_dtypes  # NumPy has no such type

        return numpy.empty(info.shape, ml_dtypes.bfloat16)
    return numpy.empty(info.shape, info.dtype)
