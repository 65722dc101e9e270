"""What processes send each other as bytes: objects in shared blocks, and requests for batches.

Objects: pickle protocol 5, with the bytes of arrays and tensors beside the pickle.

    block:    n, length of the pickle | offset and length of each buffer | pickle | buffers, 64-byte aligned

What is unpacked lies in the block and keeps it; arrays and tensors are writable.

Requests: the main process posts one with each batch, and workers read it.

    request:  mode, epoch, base seed, shared seed | what the mode needs

Modes: INTS, NUMPY_INTS, OBJECTS: one index a slot (int, numpy.int64, or anything that can be pickled); KEYED: also the
batch and slot that each one's random numbers follow from, where these are not its own; WHOLE: one index for all, as the
data set or its __getitems__ takes it; NEXT: so many items of an iterator, how many were left out at its beginning, and
how many batches were asked for since.
"""

import io
import pickle
import struct
import sys
from array import array
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


# --- requests ---

INTS, NUMPY_INTS, OBJECTS, KEYED, WHOLE, NEXT = MODES = range(6)
REQUEST_HEAD = struct.Struct("<IIQQ")
ITEMS = struct.Struct("<QQQ")
NO_SEED = (1 << 64) - 1
ONE_ITEM = (1 << 64) - 1  # without a batch around it


class Requests:
    """Makes the requests of an epoch."""

    def __init__(self, number, base_seed, shared_seed):
        shared = NO_SEED if shared_seed is None else shared_seed
        self._heads = [REQUEST_HEAD.pack(mode, number, base_seed % (1 << 64), shared) for mode in MODES]

    def of_slots(self, indices, keys=None):
        """Return the request of a batch with an index for each slot."""
        if keys is not None:
            return self._heads[KEYED] + pickle.dumps((indices, keys))
        if all(type(index) is int for index in indices):
            try:
                return self._heads[INTS] + array("q", indices).tobytes()
            except OverflowError:
                pass
        elif all(map(_is_numpy_int, indices)):
            return self._heads[NUMPY_INTS] + array("q", indices).tobytes()
        return self._heads[OBJECTS] + pickle.dumps(indices)

    def of_whole(self, index):
        """Return the request of a batch that is asked for at once: one index, or a list of indices."""
        return self._heads[WHOLE] + pickle.dumps(index)

    def of_items(self, n, skipped, batches):
        """Return the request of the next n items of an iterator (None: one, without a batch)."""
        return self._heads[NEXT] + ITEMS.pack(ONE_ITEM if n is None else n, skipped, batches)


def _is_numpy_int(index):
    return "numpy" in sys.modules and type(index) is sys.modules["numpy"].int64


class _Last:
    """The last pickle that was read: many claims of one batch have the same."""

    data = value = None

    @classmethod
    def loads(cls, payload):
        """Return the value of a pickle."""
        data = payload.obj
        if cls.data is None or cls.data != data:
            cls.value = pickle.loads(payload)
            cls.data = data
        return cls.value


class Request:
    """A request as a worker reads it."""

    __slots__ = ("base_seed", "epoch", "mode", "payload", "shared_seed")

    def __init__(self, data):
        self.mode, self.epoch, self.base_seed, shared = REQUEST_HEAD.unpack_from(data, 0)
        self.shared_seed = None if shared == NO_SEED else shared
        self.payload = memoryview(data)[REQUEST_HEAD.size :]

    def indices(self, first, n):
        """Return the indices of n slots from `first` on."""
        if self.mode == INTS:
            return self.payload[8 * first : 8 * (first + n)].cast("q").tolist()
        if self.mode == NUMPY_INTS:
            import numpy

            return list(numpy.frombuffer(self.payload, numpy.int64, n, 8 * first))
        found = _Last.loads(self.payload)
        return (found[0] if self.mode == KEYED else found)[first : first + n]

    def key(self, tag, slot):
        """Return the batch and slot that key a sample's random numbers."""
        return _Last.loads(self.payload)[1][slot] if self.mode == KEYED else (tag, slot)

    def index(self):
        """Return the index of a WHOLE request."""
        return pickle.loads(self.payload)

    def items(self):
        """Return how many items (None: one, without a batch), how many are skipped first, and
        batches asked for since."""
        n, skipped, batches = ITEMS.unpack(self.payload)
        return None if n == ONE_ITEM else n, skipped, batches
