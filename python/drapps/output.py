"""Native arrays as arrays of the user's framework, without a copy.

torch and NumPy are imported when the first batch is made, not with this module.
"""

import sys

from drapps import _core

OUTPUTS = ("auto", "torch", "numpy", "raw")


def choose(output):
    """Return the kind of arrays to deliver; "auto": torch if the program has imported it, else NumPy."""
    if output not in OUTPUTS:
        raise _core.ArgumentError(f"output must be one of {', '.join(map(repr, OUTPUTS))}, got {output!r}")
    if output == "auto":
        return "torch" if "torch" in sys.modules else "numpy"
    return output


def to_torch(array):
    """Return a torch tensor over the memory of a native array."""
    import torch

    return torch.from_dlpack(array)


def to_numpy(array):
    """Return a NumPy array over the memory of a native array."""
    import numpy

    if isinstance(array, _core.Array):
        array = memoryview(array)  # raises for bfloat16
    return numpy.asarray(array)


def keep(array):
    """Return the native array itself."""
    return array


CONVERT = {"torch": to_torch, "numpy": to_numpy, "raw": keep}


def from_numpy(array, output):
    """Return a NumPy array made by drapps as the chosen kind of array ("raw" keeps NumPy)."""
    if output == "torch":
        import torch

        return torch.from_numpy(array)
    return array
