"""3D-UNet as a Python data set: volumes of widely varying size, offline and online ops at each access."""

import os
import time

from ..case import Column, Workload, in_order_both_ways
from ..consumer import Tally, drain, fingerprint
from ..volume_sets import make_set


def arguments(options):
    return {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"]}


def prepare(options, folder):
    """What every volume costs by itself: the bound of the utilisation needs it."""
    data, costs = make_set(options), []
    for key in range(len(data)):
        began = time.perf_counter()
        data[key]
        costs.append((time.perf_counter() - began) * 1e3)
    mean_batch = sum(costs) / len(costs) * options["batch"] / options["workers"]
    return {"costs_ms": [round(cost, 3) for cost in costs], "step": options["step_ms"] or round(mean_batch, 2)}


def run(make, case, options):
    data = make_set(options)
    tally, digests = Tally(len(data)), []

    def take(batch):
        image, label, keys = batch
        tally.add(keys)
        digests.append(fingerprint(keys, image) + fingerprint(keys, label))

    seen = drain(make(data, **case.arguments), options["step"] / 1e3, take)
    tally.check()
    return {"au": seen.utilisation, "share": seen.utilisation / bound(options), "wall_s": seen.wall,
            "longest_ms": max(seen.waits[1:], default=0) * 1e3, "digest": sum(digests) % (1 << 61)}


def bound(options):
    """As in skewed.py, from costs that were measured one volume at a time."""
    costs, step = options["costs_ms"], options["step"]
    n = -(-len(costs) // options["batch"])
    workers = min(options["workers"], len(os.sched_getaffinity(0)))
    first = sum(sorted(costs)[:options["batch"]]) / workers
    return n * step / max(sum(costs) / workers + step, first + n * step)


def notes(result):
    options = {**result["options"], **result["prepared"]}
    costs = sorted(options["costs_ms"])
    return [f"A volume alone takes {costs[0]:.0f} to {costs[-1]:.0f} ms, the median {costs[len(costs) // 2]:.0f} ms.",
            f"Accelerator emulated, a step is {options['step']} ms; work-conserving bound of the utilisation: "
            f"{bound(options):.3f}.  Random choices are keyed by volume, so that all loaders make the same crops."]


WORKLOAD = Workload(
    title="3D-UNet's data as a Python data set",
    options={"data": None, "volumes": 160, "scale": 0.25, "crop": 32, "batch": 2, "workers": 2, "step_ms": None},
    quick={"volumes": 8, "scale": 0.05, "crop": 8},
    cases=lambda options: in_order_both_ways(arguments(options)), run=run, prepare=prepare, notes=notes, ratio="au",
    columns=(Column("utilisation", "au", 3), Column("of the bound", "share", 3), Column("wall s", "wall_s", 1),
             Column("longest wait ms", "longest_ms")),
)
