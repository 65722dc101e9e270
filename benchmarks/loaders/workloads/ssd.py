"""SSD-like detection: COCO's images and boxes, five online ops, in Python and as native ops."""

import itertools
import os

import numpy as np

from ..case import Case, Column, Workload, in_order_both_ways
from ..consumer import Tally, drain, fingerprint
from ..detection_sets import MEAN, SIDE, STD, Detection, collate, find_coco, read_boxes, write_coco

BOTH = "image,boxes"


def prepare(options, folder):
    return {"root": options["data"] or write_coco(os.path.join(folder, "coco"), options["images"])}


def native_pipe(root):
    """Return SSD's ops as a pipeline; the colour op is torchvision's RandomPhotometricDistort."""
    import drapps

    pipe = drapps.read_coco(*find_coco(root)).decode().random_photometric_distort().random_iou_crop(fields=BOTH)
    pipe = pipe.resize((SIDE, SIDE), fields=BOTH).random_horizontal_flip(fields=BOTH)
    return pipe.sanitize_bounding_boxes(fields="image,boxes,labels").normalize(mean=MEAN, std=STD)


def run_native(arguments, options):
    pipe = native_pipe(options["root"])
    loader = pipe.loader(batch_size=arguments["batch_size"], shuffle=True, seed=0, workers=arguments["num_workers"],
                         in_order=arguments["in_order"], outputs="image,boxes,labels",
                         collate={"boxes": "ragged", "labels": "ragged"})
    tally = Tally(len(pipe))
    epochs = itertools.chain.from_iterable(loader.batches() for _ in range(options["repeat"]))
    seen = drain(epochs, options["step_ms"] / 1e3, lambda batch: tally.add(np.asarray(batch.ids)))
    return figures(seen, tally.check(options["repeat"]))


def figures(seen, samples):
    return {"samples_per_s": samples / seen.wall, "au": seen.utilisation, "wall_s": seen.wall}


def run(make, case, options):
    if not make:
        return run_native(case.arguments, options)
    data = Detection(read_boxes(options["root"]) * options["repeat"])
    tally, digests = Tally(len(data)), []

    def take(batch):
        images, boxes, labels, keys = batch
        tally.add(keys)
        digests.append(fingerprint(keys, images) + int((boxes[:, 1:] * 1e4).round().sum()) + int(labels.sum()))

    seen = drain(make(data, collate_fn=collate, **case.arguments), options["step_ms"] / 1e3, take)
    return {**figures(seen, tally.check()), "digest": sum(digests) % (1 << 61)}


def cases(options):
    arguments = {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"]}
    native = Case("native ops, in_order=False", "native", {**arguments, "in_order": False}, "torch, in order")
    return [*in_order_both_ways(arguments), native]


WORKLOAD = Workload(
    title="SSD-like detection: crop by overlap, resize, flip, colour, normalise",
    options={"data": None, "images": 128, "repeat": 8, "batch": 8, "workers": 2, "step_ms": 40},
    quick={"images": 12, "repeat": 1, "batch": 4, "step_ms": 2},
    cases=cases, run=run, prepare=prepare, ratio="au",
    columns=(Column("samples/s", "samples_per_s"), Column("utilisation", "au", 3), Column("wall s", "wall_s", 1)),
    notes=lambda result: ["Accelerator emulated.  The Python data set's random choices are keyed by image: all loaders "
                          "make the same samples.  The native ops draw their own."],
)
