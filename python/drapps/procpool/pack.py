"""Objects to and from shared blocks: pickle protocol 5, with the bytes of arrays and tensors beside the pickle.

    block:  n, length of the pickle | offset and length of each buffer | pickle | buffers, 64-byte aligned

What is unpacked lies in the block and keeps it; arrays and tensors are writable.
"""

import io
import pickle
import struct
import sys
from multiprocessing.reduction import ForkingPickler

ALIGN = 64
HEAD = struct.Struct("<QQ")
PLACE = struct.Struct("<QQ")


class PackError(TypeError):
    """An object cannot be pickled."""


def aligned(offset):
    """The next offset at which an array may begin."""
    return (offset + ALIGN - 1) // ALIGN * ALIGN


def _pickler(file, buffer_callback):
    """One that knows tensors, where there can be any."""
    if "torch" not in sys.modules:
        return ForkingPickler(file, pickle.HIGHEST_PROTOCOL, True, buffer_callback)
    from drapps.procpool.torch_pack import Pickler

    return Pickler(file, buffer_callback)


def dumps(value):
    """The pickle of a value, and its buffers as flat memoryviews.  Raises PackError."""
    file, buffers = io.BytesIO(), []
    try:
        _pickler(file, lambda buffer: _keep(buffer, buffers)).dump(value)
    except Exception as error:
        raise PackError(f"an object of type {type(value).__module__}.{type(value).__qualname__} cannot be sent from a "
                        f"worker process: {type(error).__name__}: {error}") from error  # fmt: skip
    return file.getbuffer(), buffers


def _keep(buffer, buffers):
    try:
        buffers.append(buffer.raw())
    except BufferError:  # not contiguous: stays in the pickle
        return True
    return False


def pack(value, new_block):
    """Puts a value into a block from new_block(nbytes); returns the block and the bytes in use."""
    data, buffers = dumps(value)
    places, end = _places(len(data), buffers)
    block = new_block(end)
    with memoryview(block) as memory:
        HEAD.pack_into(memory, 0, len(buffers), len(data))
        at = HEAD.size
        for offset, length in places:
            PLACE.pack_into(memory, at, offset, length)
            at += PLACE.size
        memory[at : at + len(data)] = data
        for (offset, length), buffer in zip(places, buffers, strict=True):
            memory[offset : offset + length] = buffer
    return block, end


def _places(pickle_bytes, buffers):
    """(offset, length) of each buffer, and the end."""
    end = HEAD.size + len(buffers) * PLACE.size + pickle_bytes
    places = []
    for buffer in buffers:
        offset = aligned(end)
        places.append((offset, buffer.nbytes))
        end = offset + buffer.nbytes
    return places, end


def unpack(block):
    """The value in a block (anything with a buffer); its arrays lie in the block."""
    memory = memoryview(block)
    n, pickle_bytes = HEAD.unpack_from(memory, 0)
    start = HEAD.size + n * PLACE.size
    places = PLACE.iter_unpack(memory[HEAD.size : start])
    buffers = [memory[offset : offset + length] for offset, length in places]
    return pickle.loads(memory[start : start + pickle_bytes], buffers=buffers)
