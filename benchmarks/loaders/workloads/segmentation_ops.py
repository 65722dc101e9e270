"""The cost of each op of 3D-UNet on one volume, run by run: offline ops depend on size, online ops on chance."""

import time

import numpy as np

from benchmarks import volumes
from ..case import Case, Column, Workload
from ..volume_sets import make_set, write_files

OPS = ("intensity normalisation", "resampling", "padding", "balanced crop", "random flip", "cast",
       "random brightness", "Gaussian noise")
RUNS = 6


def calls(data, key):
    """Return {op: function of a random generator}, each applied to the result of the ops before it."""
    array, spacing = volumes.read_nifti(data.images[key])
    size = volumes.resampled_size(array.shape, spacing, volumes.SPACING)
    resampled = volumes.resample(array[None], size)
    image, label = data.offline(key)
    patch, patch_label = volumes.balanced_crop(image, label, np.random.default_rng(0), data.patch)
    return {
        "intensity normalisation": lambda rng: volumes.normalize(resampled),
        "resampling": lambda rng: volumes.resample(array[None], size),
        "padding": lambda rng: volumes.pad(resampled, [n + 2 for n in resampled.shape[1:]]),
        "balanced crop": lambda rng: volumes.balanced_crop(image, label, rng, data.patch),
        "random flip": lambda rng: [np.ascontiguousarray(a) for a in volumes.flip(patch, patch_label, rng)],
        "cast": lambda rng: patch_label.astype(np.uint8),
        "random brightness": lambda rng: volumes.brightness(patch, rng),
        "Gaussian noise": lambda rng: volumes.noise(patch, rng),
    }


def run(make, case, options):
    op = calls(make_set(options), options["volume"])[case.name]
    op(np.random.default_rng(99))  # warm
    figures = {}
    for k in range(RUNS):
        rng = np.random.default_rng([k, len(case.name)])
        began = time.perf_counter()
        op(rng)
        figures[f"run{k + 1}"] = (time.perf_counter() - began) * 1e3
    return figures


WORKLOAD = Workload(
    title="The ops of 3D-UNet in NumPy on one volume, ms",
    options={"data": None, "volumes": 4, "scale": 0.25, "crop": 32, "volume": 3},
    quick={"scale": 0.05, "crop": 8},
    cases=lambda options: [Case(name, "numpy") for name in OPS], run=run, counted=False, prepare=write_files,
    columns=tuple(Column(f"run {k + 1}", f"run{k + 1}", 3) for k in range(RUNS)),
    notes=lambda result: ["Each run has its own random choices; a column has the same ones in every round."],
)
