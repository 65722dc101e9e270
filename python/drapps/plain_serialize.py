"""Serialises plain values to a text and a block of bytes: the form in which drapps.deterministic caches results.

Reading never runs stored code: the text is JSON that describes numbers, texts, arrays, tensors, and tuples, lists and
dicts of them; the block has the bytes of the arrays.  A value of any other type raises an error that names it.
"""

import json
import sys

ALIGN = 64


class Packer:
    """Collects the buffers of a value while it is described."""

    def __init__(self):
        self.parts = []
        self.size = 0

    def add(self, buffer):
        """Add bytes to the block; return [offset, size]."""
        buffer = memoryview(buffer).cast("B") if len(buffer) else b""
        at, n = self.size, len(buffer)
        self.parts += [buffer, bytes(-n % ALIGN)]
        self.size += n + -n % ALIGN
        return [at, n]


def pack(value):
    """Return (text, block) of a plain value.  TypeError names the place and type of a value that is not plain."""
    packer = Packer()
    text = json.dumps(_describe(value, packer, "the result"), separators=(",", ":"))
    return text, b"".join(packer.parts)


def unpack(text, memory, at):
    """Return the value whose block begins at memory[at].  Its arrays share the memory and are writable."""
    return _rebuild(json.loads(text), memory, at)


# --- describing ---


def _describe(value, packer, where):
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return ["=", value]
    if kind is float:
        return ["f", value.hex()]
    if kind is complex:
        return ["c", value.real.hex(), value.imag.hex()]
    if kind in (bytes, bytearray):
        return ["b" if kind is bytes else "B", *packer.add(value)]
    if kind in (tuple, list):
        return ["t" if kind is tuple else "l", [_describe(v, packer, f"{where}[{i}]") for i, v in enumerate(value)]]
    if kind is dict:
        return ["d", [_pair(k, v, packer, where) for k, v in value.items()]]
    return _describe_array(value, kind, packer, where)


def _pair(key, value, packer, where):
    if type(key) not in (str, int):
        raise TypeError(f"{where}: keys must be str or int, got {_name(type(key))}")
    return [key, _describe(value, packer, f"{where}[{key!r}]")]


def _describe_array(value, kind, packer, where):
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy and (kind is numpy.ndarray or isinstance(value, numpy.generic)):
        array = numpy.asarray(value)
        if not array.dtype.hasobject and array.dtype.fields is None:
            letter = "a" if kind is numpy.ndarray else "s"
            return [letter, array.dtype.str, list(array.shape), *packer.add(_numpy_bytes(numpy, array))]
    if torch and kind is torch.Tensor and value.device.type == "cpu" and value.layout is torch.strided:
        if not value.requires_grad and not value.is_quantized:
            dtype = str(value.dtype).removeprefix("torch.")
            flat = value.contiguous().reshape(-1).view(torch.uint8) if value.numel() else b""
            return ["T", dtype, list(value.shape), *packer.add(flat.numpy() if value.numel() else b"")]
    raise TypeError(
        f"{where} is a {_name(kind)}, which is not kept: drapps.deterministic keeps numbers, texts, bytes, NumPy "
        "arrays, tensors on the CPU without gradients, and tuples, lists and dicts of these"
    )


def _numpy_bytes(numpy, array):
    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8) if array.size else b""


def _name(kind):
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# --- rebuilding ---


def _rebuild(row, memory, base):
    letter, *rest = row
    if letter == "=":
        return rest[0]
    if letter == "f":
        return float.fromhex(rest[0])
    if letter == "c":
        return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
    if letter in "bB":
        at, n = rest
        return (bytes if letter == "b" else bytearray)(memory[base + at : base + at + n])
    if letter in "tl":
        return (tuple if letter == "t" else list)(_rebuild(v, memory, base) for v in rest[0])
    if letter == "d":
        return {key: _rebuild(value, memory, base) for key, value in rest[0]}
    return _rebuild_array(letter, rest, memory, base)


def _rebuild_array(letter, rest, memory, base):
    dtype, shape, at, n = rest
    if letter == "T":
        import torch

        dtype = getattr(torch, dtype)
        flat = torch.frombuffer(memory, dtype=torch.uint8, count=n, offset=base + at) if n else torch.empty(0)
        return (flat.view(dtype) if n else flat.to(dtype)).reshape(shape)
    import numpy

    flat = numpy.frombuffer(memory, numpy.uint8, n, base + at) if n else numpy.empty(0, numpy.uint8)
    array = flat.view(dtype).reshape(shape)
    return array if letter == "a" else array[()]
