"""The workloads: one file each, one row here.  Nothing is imported until a workload is loaded."""

import importlib
from typing import NamedTuple


class Row(NamedTuple):
    name: str
    module: str
    summary: str
    preset: dict = {}  # options that differ from the module's defaults


TABLE = (
    Row("folder", "image_folder", "ImageFolder and Compose: a training script with only the import changed"),
    Row("skewed", "skewed", "one sample in ten takes 20 times longer: CPU work"),
    Row("skewed-sleep", "skewed", "one sample in ten takes 20 times longer: sleep", {"work": "sleep"}),
    Row("tiny", "tiny", "samples of a few hundred bytes"),
    Row("large", "large", "samples of 10 MB, and memory"),
    Row("objects", "objects", "a list of Python objects: the memory that workers add"),
    Row("start", "first_batch", "from construction to the first batch"),
    Row("epochs", "epoch_gap", "from the last step of an epoch to the first batch of the next"),
    Row("kill", "kills", "a random worker is killed every two seconds"),
    Row("one-slow", "one_slow", "one sample of 2 s among those of 10 ms: does the consumer stall?"),
    Row("decoupled", "decoupled", "steps of 50 ms, batches that take one worker 40 ms"),
    Row("handoff", "handoff", "10 KB samples: transferred one by one, or batch by batch"),
    Row("consumers", "consumers", "1 to 8 consumer threads on one loader"),
    Row("unet3d", "segmentation", "3D-UNet: volumes of widely varying size, offline and online ops"),
    Row("unet3d-ops", "segmentation_ops", "3D-UNet: the cost of each op, run by run"),
    Row("offline-online", "offline_online", "3D-UNet: an offline pass and then training, or both as one block"),
    Row("eight", "eight_consumers", "3D-UNet's published costs at a tenth, eight emulated accelerators"),
    Row("published", "published", "3D-UNet, the published comparison: offline first and a loader each, or one block"),
    Row("ssd", "ssd", "detection: images and boxes"),
    Row("accuracy", "accuracy", "a small network trained in order and out of order"),
)
NAMES = tuple(row.name for row in TABLE)


def row(name):
    for r in TABLE:
        if r.name == name:
            return r
    raise SystemExit(f"workload must be one of {', '.join(NAMES)}, got {name!r}")


def load(name):
    """Return the Workload `name`, with the options of its row."""
    found = row(name)
    workload = importlib.import_module("." + found.module, __name__).WORKLOAD
    return workload._replace(options={**workload.options, **found.preset})
