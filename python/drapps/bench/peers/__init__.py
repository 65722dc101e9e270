"""The peers: one file each, one row here.  Nothing is imported until a peer is loaded in its own environment."""

import importlib
from collections import namedtuple

# framework: imported before the base of the memory figure is taken.
# converts: wants its files in a container of its own, written once by `prepare`.
Row = namedtuple("Row", "name module title environment framework converts differs")

TABLE = (
    Row("drapps", "drapps_", "drapps", "", "torch", False, ""),
    Row("torch_pil", "torch_pil", "PyTorch + torchvision v1 on PIL", "torch", "torch", False, ""),
    Row("torch_uint8", "torch_uint8", "PyTorch + torchvision v2 on uint8, decode_jpeg", "torch", "torch", False, ""),
    Row("dali", "dali", "DALI (CPU)", "dali", "torch", False, ""),
    Row("tfdata", "tfdata", "tf.data, antialias", "tf", "tensorflow", False, ""),
    Row("ffcv", "ffcv", "FFCV, JPEGs kept", "ffcv", "torch", True, "box filter, fast DCT"),
    Row("spdl", "spdl", "SPDL", "spdl", "torch", False, ""),
    Row("webdataset", "webdataset", "WebDataset, PIL", "webdataset", "torch", True, ""),
    Row("hand", "hand", "threads + simplejpeg + OpenCV", "torch", "torch", False, "box filter"),
)
NAMES = tuple(row.name for row in TABLE)


def row(name):
    for r in TABLE:
        if r.name == name:
            return r
    raise SystemExit(f"no peer is called {name!r}; there are {', '.join(NAMES)}")


def framework(name):
    return row(name).framework


def load(name):
    """The Peer class of `name`; imports the peer's libraries."""
    return importlib.import_module("." + row(name).module, __name__).PEER
