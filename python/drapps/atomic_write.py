"""Writes a file atomically: the new content replaces the old one completely, or not at all."""

import os


def write_atomic(path, data):
    """Write bytes to a file.  On failure the old content stays and the OSError names the path.

    The bytes go to a temporary file in the same folder, which is then renamed.  A target that is not a regular file
    (/dev/stdout), or whose folder is not writable, is written in place.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.exists(target) and not (os.path.isfile(target) and os.access(os.path.dirname(target), os.W_OK)):
        return _write(path, target, data, "wb")
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        _write(path, temporary, data, "xb")
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _write(path, target, data, mode):
    try:
        with open(target, mode) as file:
            file.write(data)
    except OSError as error:  # a failed write names no file, or the temporary one
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
