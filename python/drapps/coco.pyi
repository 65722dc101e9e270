import os

from .pipeline import Pipeline

def read_coco(
    annotations: str | os.PathLike[str],
    root: str | os.PathLike[str],
    empty: bool = ...,
    masks: bool = ...,
    keypoints: bool = ...,
    crowds: bool = ...,
) -> Pipeline: ...
