"""From native arrays to what the user's framework calls an array, without a copy.

torch and NumPy are looked up when the first batch is made, never at import.
"""

import sys

from drapps import _core

OUTPUTS = ("auto", "torch", "numpy", "raw")


def choose(output):
    """The name of the kind of arrays to deliver: "auto" is torch where the program has imported it, else NumPy."""
    if output not in OUTPUTS:
        raise _core.ArgumentError(f"output must be one of {', '.join(map(repr, OUTPUTS))}, got {output!r}")
    if output == "auto":
        return "torch" if "torch" in sys.modules else "numpy"
    return output


def to_torch(array):
    """A native array as a torch tensor over the same memory."""
    import torch

    return torch.from_dlpack(array)


def to_numpy(array):
    """A native array as a NumPy array over the same memory."""
    import numpy

    if isinstance(array, _core.Array):
        array = memoryview(array)  # bfloat16 is refused here, in words
    return numpy.asarray(array)


def keep(array):
    """The native array itself."""
    return array


CONVERT = {"torch": to_torch, "numpy": to_numpy, "raw": keep}


def from_numpy(array, output):
    """A NumPy array that drapps made as an array of the chosen kind ("raw" keeps NumPy)."""
    if output == "torch":
        import torch

        return torch.from_numpy(array)
    return array
