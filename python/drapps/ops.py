"""Every op of the library as a function that returns an Op, for random_apply, random_choice and Pipeline.op.

    import drapps
    jitter = drapps.ops.color_jitter(brightness=0.4)
    pipe = drapps.read(path).decode().random_apply([jitter], p=0.8)
"""

from drapps.optable import TABLE as _TABLE
from drapps.optable import make_functions as _make_functions

__all__ = list(_TABLE)

globals().update(_make_functions(__name__))
