"""Checks for numbers of any library: Python's, NumPy's, fractions."""

from numbers import Real
from typing import Any, TypeGuard


def is_real(value: Any) -> TypeGuard[float]:
    """Return whether a value is a real number, which compares and converts like a float.

    >>> is_real(1), is_real("1")
    (True, False)
    """
    return isinstance(value, Real)
