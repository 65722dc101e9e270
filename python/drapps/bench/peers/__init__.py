"""The peers: one file each, one row here.  Nothing is imported until a peer is loaded in its own environment."""

import importlib
from collections import namedtuple

# framework: the training framework; memory is counted above that of a process that only imported it.
# tune: a function from the number of CPUs to the settings to try; the runner keeps the fastest.
# differs: how its work differs from the workload, if its API cannot do the same.
Row = namedtuple("Row", "name module title environment framework tune differs")


def _counts(cpus):
    return sorted({cpus, cpus + 1, 2 * cpus})


def _workers(cpus):
    return [{"workers": n} for n in _counts(cpus)]


def _threads(cpus):
    return [{"threads": n} for n in _counts(cpus)]


def _calls(cpus):
    return [{}] + [{"calls": n} for n in _counts(cpus)]  # {}: AUTOTUNE


def _ahead(cpus):
    return [{"workers": cpus, "ahead": n} for n in (1, 2, 3)]


def _seek_points(where):
    return lambda cpus: [{"seek_index": where}]  # not "auto", which writes a file beside the user's data


TABLE = (
    Row("drapps", "drapps_", "drapps, later epochs (seek points kept)", "", "torch", _seek_points("memory"), ""),
    Row("drapps_first", "drapps_", "drapps, first epoch (no seek points)", "", "torch", _seek_points("off"), ""),
    Row("torch_pil", "torch_pil", "PyTorch + torchvision v1 on PIL", "torch", "torch", _workers, ""),
    Row("torch_uint8", "torch_uint8", "PyTorch + torchvision v2 on uint8", "torch", "torch", _workers, ""),
    Row("dali", "dali", "DALI (CPU)", "dali", "torch", _threads, ""),
    Row("tfdata", "tfdata", "tf.data, antialias", "tf", "tensorflow", _calls, "fast DCT"),
    Row("ffcv", "ffcv", "FFCV, JPEGs kept", "ffcv", "torch", _ahead, "fast DCT, box filter"),
    Row("spdl", "spdl", "SPDL", "spdl", "torch", _threads, ""),
    Row("webdataset", "webdataset", "WebDataset on PIL", "webdataset", "torch", _workers, ""),
    Row("streaming", "streaming", "MosaicML Streaming on PIL", "streaming", "torch", _workers, ""),
    Row("litdata", "litdata", "LitData on PIL", "litdata", "torch", _workers, ""),
    Row("hand", "hand", "threads + simplejpeg + OpenCV", "torch", "torch", _threads, "box filter"),
)
NAMES = tuple(row.name for row in TABLE)
OURS = tuple(row.name for row in TABLE if not row.environment)  # the ways of drapps; the first is the default


def row(name):
    for r in TABLE:
        if r.name == name:
            return r
    raise SystemExit(f"peer must be one of {', '.join(NAMES)}, got {name!r}")


def load(name):
    """Return the Peer class of `name`; imports the peer's libraries."""
    return importlib.import_module("." + row(name).module, __name__).PEER
