"""Errors on their way from a worker: torch's ExceptionWrapper, or its text when its exception cannot be pickled."""

import pickle
from typing import Any, NamedTuple

from torch._utils import ExceptionWrapper

from drapps.procpool.pack import pack, unpack


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
    """Return the Failure in a block; an exception whose class is not known here becomes a RuntimeError with its text."""
    fatal, data, _, text, where = unpack(block)
    try:
        return Failure(fatal, pickle.loads(data))
    except Exception:
        wrapper = ExceptionWrapper((RuntimeError, RuntimeError(), None), where)
        wrapper.exc_msg = text
        return Failure(fatal, wrapper)
