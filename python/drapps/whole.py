"""Files that are written as a whole, or not at all."""

import os


def write_whole(path, data):
    """Writes bytes to a file; where that fails, what was there before stays, and the OSError names the path.

    They are written beside it and then take its name.  What is no plain file (/dev/stdout), or lies in a folder that
    takes no further file, is written to as it is.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.exists(target) and not (os.path.isfile(target) and os.access(os.path.dirname(target), os.W_OK)):
        return _write(path, target, data, "wb")
    beside = f"{target}.{os.getpid()}.tmp"
    try:
        _write(path, beside, data, "xb")
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def _write(path, target, data, mode):
    try:
        with open(target, mode) as file:
            file.write(data)
    except OSError as error:  # that of a write names no file, and nobody asked for the one beside
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
