"""3D-UNet: volumes of widely varying size, offline and online ops at each access; in Python, and as native ops."""

import os
import time

import numpy as np

from ... import volumes
from ..case import Case, Column, Workload, in_order_both_ways
from ..consumer import Tally, drain, fingerprint
from ..volume_sets import make_set, write_files


def cases(options):
    arguments = {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"]}
    native = [Case(f"native ops, {words}", "native", {**arguments, "in_order": in_order}, "torch, in order")
              for in_order, words in ((True, "in order"), (False, "in_order=False"))]
    return in_order_both_ways(arguments) + native


def prepare(options, folder):
    """The files, and what every volume costs by itself: the bound of the utilisation needs it."""
    made = write_files(options, folder)
    data, costs = make_set({**options, **made}), []
    for key in range(len(data)):
        began = time.perf_counter()
        data[key]
        costs.append((time.perf_counter() - began) * 1e3)
    mean_batch = sum(costs) / len(costs) * options["batch"] / options["workers"]
    return {**made, "costs_ms": [round(cost, 3) for cost in costs], "step": options["step_ms"] or round(mean_batch, 2)}


def native_loader(options, arguments):
    pipe = volumes.native(options["images"], options["labels"], patch=(options["crop"],) * 3)
    return pipe.loader(batch_size=arguments["batch_size"], shuffle=True, seed=0, workers=arguments["num_workers"],
                       in_order=arguments["in_order"], memory_limit=int(options["memory_gb"] * 1e9))


def run(make, case, options):
    tally, digests = Tally(len(options["images"])), []

    def take(batch):
        image, label, keys = batch
        tally.add(keys)
        digests.append(fingerprint(keys, image) + fingerprint(keys, label))

    if make:
        seen = drain(make(make_set(options), **case.arguments), options["step"] / 1e3, take)
    else:
        batches = native_loader(options, case.arguments).batches()
        seen = drain(batches, options["step"] / 1e3, lambda batch: tally.add(np.asarray(batch.ids)))
    tally.check()
    return {"au": seen.utilisation, "share": seen.utilisation / bound(options), "wall_s": seen.wall,
            "longest_ms": max(seen.waits[1:], default=0) * 1e3, "digest": sum(digests) % (1 << 61) if make else None}


def bound(options):
    """As in skewed.py, from what the volumes cost in Python, measured one at a time."""
    costs, step = options["costs_ms"], options["step"]
    n = -(-len(costs) // options["batch"])
    workers = min(options["workers"], len(os.sched_getaffinity(0)))
    first = sum(sorted(costs)[:options["batch"]]) / workers
    return n * step / max(sum(costs) / workers + step, first + n * step)


def notes(result):
    options = {**result["options"], **result["prepared"]}
    costs = sorted(options["costs_ms"])
    return [f"A volume alone takes {costs[0]:.0f} to {costs[-1]:.0f} ms in Python, the median "
            f"{costs[len(costs) // 2]:.0f} ms.",
            f"Accelerator emulated, a step is {options['step']} ms; work-conserving bound of the utilisation in Python "
            f"{bound(options):.3f}.",
            "The Python data set's random choices are keyed by volume: its crops are the same for all loaders.  The "
            "native ops draw their own."]


WORKLOAD = Workload(
    title="3D-UNet's data as a Python data set and as native ops",
    options={"data": None, "volumes": 80, "scale": 0.25, "crop": 32, "batch": 2, "workers": 2, "step_ms": None,
             "memory_gb": 0},
    quick={"volumes": 6, "scale": 0.05, "crop": 8},
    cases=cases, run=run, prepare=prepare, notes=notes, ratio="au",
    columns=(Column("utilisation", "au", 3), Column("of the bound", "share", 3), Column("wall s", "wall_s", 1),
             Column("longest wait ms", "longest_ms")),
)
