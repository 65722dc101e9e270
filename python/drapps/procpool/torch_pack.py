"""Objects of torch on their way between processes: tensors in pickles, with their bytes apart, and errors.

pack.py uses the Pickler here where torch is imported.  An error is torch's ExceptionWrapper, or its text when its
exception cannot be pickled.
"""

import pickle
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import torch
from torch._utils import ExceptionWrapper

from drapps.procpool.pack import pack, unpack

STORAGES = (torch.UntypedStorage, torch.TypedStorage)


# --- tensors ---


def tensor_from(buffer, dtype, shape):
    """A tensor over a buffer."""
    if memoryview(buffer).nbytes == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(buffer, dtype=dtype).view(shape)


def subclass_from(plain, kind, attributes):
    """A tensor of a subclass, with what was in its __dict__."""
    tensor = plain.as_subclass(kind)
    tensor.__dict__.update(attributes)
    return tensor


def _is_dense(tensor):
    return tensor.layout is torch.strided and tensor.device.type == "cpu" and not (
        tensor.requires_grad or tensor.is_quantized or tensor.is_nested or tensor._is_zerotensor())  # fmt: skip


def _reduce_dense(tensor):
    plain = tensor.resolve_neg().resolve_conj().contiguous()
    if plain.numel() == 0:
        return tensor_from, (b"", plain.dtype, tuple(plain.shape))
    data = plain.view(-1).view(torch.uint8).numpy()
    return tensor_from, (pickle.PickleBuffer(data), plain.dtype, tuple(plain.shape))


def _is_plain_subclass(kind):
    return (kind.__reduce_ex__ is torch.Tensor.__reduce_ex__ and kind.__setstate__ is torch.Tensor.__setstate__
            and kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__)  # fmt: skip


def _reduce_tensor(tensor):
    if type(tensor) is torch.Tensor and not tensor.__dict__:
        return _reduce_dense(tensor) if _is_dense(tensor) else tensor.__reduce_ex__(5)
    if not _is_plain_subclass(type(tensor)):
        return tensor.__reduce_ex__(5)
    with torch._C.DisableTorchFunctionSubclass():
        if not _is_dense(tensor):
            return tensor.__reduce_ex__(5)
        return subclass_from, (tensor.as_subclass(torch.Tensor), type(tensor), dict(tensor.__dict__))


def _is_handed_on(value):
    """It lies in memory that processes share, and is on its way to a process that is being started: torch's own way,
    by a descriptor, works there, and both sides go on sharing it."""
    if get_spawning_popen() is None or not isinstance(value, (torch.Tensor, *STORAGES)):
        return False
    try:
        storage = value.untyped_storage() if isinstance(value, torch.Tensor) else value
        storage = storage._untyped_storage if isinstance(storage, torch.TypedStorage) else storage
        return storage.device.type == "cpu" and storage.is_shared()
    except (NotImplementedError, RuntimeError):  # sparse tensors, some of subclasses: they have no storage
        return False


class Pickler(ForkingPickler):
    """Pickles with the buffers apart; what others registered with ForkingPickler holds, but for torch's own."""

    def __init__(self, file, buffer_callback):
        super().__init__(file, pickle.HIGHEST_PROTOCOL, True, buffer_callback)

    def reducer_override(self, value):
        """Tensors with their bytes apart; storages as plain pickles, not as files of shared memory, but for those that
        are in it."""
        if _is_handed_on(value):
            return NotImplemented
        if isinstance(value, torch.Tensor):
            return _reduce_tensor(value)
        if isinstance(value, STORAGES):
            return value.__reduce_ex__(5)
        return NotImplemented


# --- errors ---


class Failure(NamedTuple):
    """An error of a worker."""

    fatal: bool  # it is not about a sample, so no other sample can replace it
    error: Any  # an ExceptionWrapper


def caught(worker):
    """The exception that is being handled, as torch would send it."""
    return ExceptionWrapper(where=f"in DataLoader worker process {worker}")


def wrapped(error, where):
    """An exception that was raised nowhere."""
    return ExceptionWrapper((type(error), error, None), where)


def pack_failure(wrapper, new_block, *, fatal=False):
    """Puts a wrapper into a block.  fatal: it is not about a sample, so none can take its place."""
    try:
        data = pickle.dumps(wrapper)
    except Exception:
        data = b""
    return pack((fatal, data, wrapper.exc_type.__qualname__, wrapper.exc_msg, wrapper.where), new_block)


def unpack_failure(block):
    """Return the Failure in a block; an exception whose class is not known here becomes a
    RuntimeError with its text."""
    fatal, data, _, text, where = unpack(block)
    try:
        return Failure(fatal, pickle.loads(data))
    except Exception:
        wrapper = ExceptionWrapper((RuntimeError, RuntimeError(), None), where)
        wrapper.exc_msg = text
        return Failure(fatal, wrapper)
