import os

from ._core import Dataset
from .pipeline import Pipeline

def read_coco(
    annotations: str | os.PathLike[str],
    root: str | os.PathLike[str],
    empty: bool = ...,
    masks: bool = ...,
    keypoints: bool = ...,
    crowds: bool = ...,
) -> Pipeline: ...

# Used by other modules of drapps.
def open_rows(rows: list[dict[str, object]], name: str, root: str) -> Dataset: ...
