"""SSD-like detection as a Python data set: images of COCO, their boxes, five online ops."""

import os

from ..case import Column, Workload, in_order_both_ways
from ..consumer import Tally, drain, fingerprint
from ..detection_sets import Detection, collate, read_coco, write_coco


def prepare(options, folder):
    return {"root": options["data"] or write_coco(os.path.join(folder, "coco"), options["images"])}


def run(make, case, options):
    data = Detection(read_coco(options["root"]) * options["repeat"])
    tally, digests = Tally(len(data)), []

    def take(batch):
        images, boxes, labels, keys = batch
        tally.add(keys)
        digests.append(fingerprint(keys, images) + int((boxes[:, 1:] * 1e4).round().sum()) + int(labels.sum()))

    seen = drain(make(data, collate_fn=collate, **case.arguments), options["step_ms"] / 1e3, take)
    samples = tally.check()
    return {"samples_per_s": samples / seen.wall, "au": seen.utilisation, "wall_s": seen.wall,
            "digest": sum(digests) % (1 << 61)}


def cases(options):
    return in_order_both_ways({"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"]})


WORKLOAD = Workload(
    title="SSD-like detection as a Python data set: crop by overlap, resize, flip, colour, normalise",
    options={"data": None, "images": 128, "repeat": 8, "batch": 8, "workers": 2, "step_ms": 40},
    quick={"images": 12, "repeat": 1, "batch": 4, "step_ms": 2},
    cases=cases, run=run, prepare=prepare, ratio="au",
    columns=(Column("samples/s", "samples_per_s"), Column("utilisation", "au", 3), Column("wall s", "wall_s", 1)),
    notes=lambda result: ["Accelerator emulated.  Random choices are keyed by image: all loaders make the same ones."],
)
