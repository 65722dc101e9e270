"""Imports torchvision for the examples."""

import sys

import torch


def import_torchvision():
    """Return torchvision, even if its compiled part does not fit the installed torch (a CUDA build beside a CPU torch).

    Its transforms need none of the compiled ops, but its import fails unless two of them are declared.
    """
    try:
        import torchvision
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision
        torchvision.declared_ops = library  # the declaration exists as long as this object
    return torchvision
