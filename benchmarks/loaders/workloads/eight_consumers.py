"""3D-UNet with eight emulated accelerators: the costs that its authors published, at a tenth, as sleep.

A volume costs its offline ops in proportion to its size (550 ms on average), and of the online ops those that chance
picks: flip 32 ms, cast 3, brightness 6, noise 149, balanced crop 965 where it searches the foreground, else 0.2.
"""

import random
import time

from ..case import Column, Workload, in_order_both_ways
from ..timed_work import TimedWork
from .consumers import drain_shared, shared, tally_of

OFFLINE_MS = 115 + 380 + 55
SLICES = (53, 734)


def offline_ms(rng):
    """A volume of random size."""
    return OFFLINE_MS * rng.uniform(*SLICES) / (sum(SLICES) / 2)


def online_ms(rng):
    """What chance picks for a sample."""
    ms = 3 + 32 * (rng.random() < 0.7) + 6 * (rng.random() < 0.1) + 149 * (rng.random() < 0.1)
    return ms + (965 if rng.random() < 0.4 else 0.2)


def costs(options):
    """Milliseconds of each volume of one epoch, scaled."""
    rng = random.Random(1)
    return [(offline_ms(rng) + online_ms(rng)) * options["scale"] for _ in range(options["volumes"])]


def step_ms(options):
    """The step at which the accelerators take exactly what the workers can make."""
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
    """Seconds of an epoch in which no worker is idle while work is left, nor an accelerator while a batch is ready.

    All work spread evenly over the workers, and the last step; or the first batch, and all steps of one accelerator.
    """
    made, step, batches = sorted(costs(options)), step_ms(options), -(-options["volumes"] // options["batch"])
    steps = -(-batches // options["consumers"])
    return max(sum(made) / options["workers"] + step, made[options["batch"] - 1] + steps * step) / 1e3


def bound(options):
    """Usage in such epochs."""
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
