"""What each op of 3D-UNet costs on one volume, run by run: size decides offline, chance decides online."""

import time

import numpy as np

from .. import volumes
from ..case import Case, Column, Workload
from ..volume_sets import make_set

OFFLINE = ("intensity normalisation", "resampling", "padding")
ONLINE = ("random flip", "cast", "random brightness", "Gaussian noise", "balanced crop")
RUNS = 6


def calls(data, options):
    """{op: function of a random generator}, each on what the ops before it made."""
    image, label, spacing = data.raw(options["volume"])
    normal = volumes.normalize_intensity(image)
    resampled = volumes.resample(normal, spacing)
    done, done_label = data.offline(options["volume"])
    crop = options["crop"]
    return {
        "intensity normalisation": lambda rng: volumes.normalize_intensity(image),
        "resampling": lambda rng: volumes.resample(normal, spacing),
        "padding": lambda rng: volumes.pad_to(resampled, max(resampled.shape) + 2, 0),
        "random flip": lambda rng: volumes.random_flip(done, done_label, rng),
        "cast": lambda rng: volumes.cast(done, done_label),
        "random brightness": lambda rng: volumes.random_brightness(done, rng),
        "Gaussian noise": lambda rng: volumes.gaussian_noise(done, rng),
        "balanced crop": lambda rng: volumes.balanced_crop(done, done_label, crop, rng),
    }


def run(make, case, options):
    op = calls(make_set(options), options)[case.name]
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
    options={"data": None, "volumes": 160, "scale": 0.25, "crop": 32, "volume": 3},
    quick={"volumes": 8, "scale": 0.05, "crop": 8},
    cases=lambda options: [Case(name, "numpy") for name in OFFLINE + ONLINE], run=run, counted=False,
    columns=tuple(Column(f"run {k + 1}", f"run{k + 1}", 3) for k in range(RUNS)),
    notes=lambda result: ["Each run draws anew; the same column has the same draws in every round."],
)
