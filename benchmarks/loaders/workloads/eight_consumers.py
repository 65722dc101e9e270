"""3D-UNet with eight emulated accelerators: its published costs, at a tenth, as sleep.

The offline ops of a volume cost time in proportion to its size (550 ms on average); of the online ops a random choice
runs: flip 32 ms, cast 3, brightness 6, noise 149, balanced crop 965 if it searches the foreground, else 0.2.
"""

import random
import time

from ..case import Column, Workload, in_order_both_ways
from ..timed_work import TimedWork
from .consumers import drain_shared, shared, tally_of

OFFLINE_MS = 115 + 380 + 55
SLICES = (53, 734)


def offline_ms(rng):
    """Return the offline cost of a volume of random size."""
    return OFFLINE_MS * rng.uniform(*SLICES) / (sum(SLICES) / 2)


def online_ms(rng):
    """Return the online cost of a sample."""
    ms = 3 + 32 * (rng.random() < 0.7) + 6 * (rng.random() < 0.1) + 149 * (rng.random() < 0.1)
    return ms + (965 if rng.random() < 0.4 else 0.2)


def costs(options):
    """Return the milliseconds of each volume of an epoch, scaled."""
    rng = random.Random(1)
    return [(offline_ms(rng) + online_ms(rng)) * options["scale"] for _ in range(options["volumes"])]


def step_ms(options):
    """Return the step at which accelerators and workers are equally fast."""
    mean = sum(costs(options)) / options["volumes"]
    return mean * options["batch"] * options["consumers"] / options["workers"]


def run(make, case, options):
    data, step_s = TimedWork(costs(options), None), step_ms(options) / 1e3
    began = time.perf_counter()
    held = 0.0
    for _ in range(options["epochs"]):
        batches = shared(iter(make(data, **case.arguments)), case.loader)
        threads, _ = drain_shared(batches, options["consumers"], step_s)
        tally_of(threads, len(data)).check()
        held += sum(thread.held for thread in threads)
    wall = time.perf_counter() - began
    usage = held / (wall * options["consumers"])
    return {"wall_s": wall, "usage": usage, "share": usage / bound(options)}


def least_s(options):
    """Return the seconds of an epoch with no worker idle while work is left, and no accelerator while a batch is ready.

    The maximum of: all work spread evenly over the workers, and the last step; the first batch, and all steps of an
    accelerator.
    """
    made, step, batches = sorted(costs(options)), step_ms(options), -(-options["volumes"] // options["batch"])
    steps = -(-batches // options["consumers"])
    return max(sum(made) / options["workers"] + step, made[options["batch"] - 1] + steps * step) / 1e3


def bound(options):
    """Return the usage in such epochs."""
    held = -(-options["volumes"] // options["batch"]) * step_ms(options) / 1e3
    return held / (least_s(options) * options["consumers"])


def cases(options):
    return in_order_both_ways({"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"]})


def notes(result):
    options = result["options"]
    found = {entry["case"]: entry["figures"] for entry in result["cases"]}
    least = least_s(options) * options["epochs"]
    lines = [f"Accelerators emulated, steps of {step_ms(options):.0f} ms; costs are slept, not computed.",
             f"Work-conserving bound, for any loader: usage {bound(options):.3f}, {least:.1f} s."]
    torch, ours = (found.get(name, {}).get("wall_s") for name in ("torch, in order", "drapps, in_order=False"))
    if torch and ours:
        lines.append(f"Time of drapps, in_order=False, over torch in order: {ours['median'] / torch['median']:.2f}; at "
                     f"the bound it would be {least / torch['median']:.2f}.")
    return lines


WORKLOAD = Workload(
    title="3D-UNet's published costs, eight emulated accelerators",
    options={"volumes": 168, "epochs": 5, "scale": 0.1, "batch": 2, "workers": 12, "consumers": 8},
    quick={"volumes": 16, "epochs": 1, "scale": 0.005, "workers": 2, "consumers": 3},
    cases=cases, run=run, notes=notes, ratio="usage",
    columns=(Column("wall s", "wall_s", 1), Column("usage", "usage", 3), Column("of the bound", "share", 3)),
)
