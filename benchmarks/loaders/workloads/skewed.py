"""One sample in ten takes 20 times longer; the consumer is an emulated accelerator with a fixed step."""

import os

from ..case import Column, Workload, in_order_both_ways
from ..consumer import Tally, drain, take_keys, whole_digest
from ..timed_work import TimedWork, calibrated, skewed_costs


def costs(options):
    return skewed_costs(options["samples"], options["fast_ms"])


def arguments(options):
    return {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"]}


def run(make, case, options):
    data = TimedWork(costs(options), options["speed"])
    tally = Tally(len(data))
    seen = drain(make(data, **case.arguments), options["step_ms"] / 1e3, take_keys(tally))
    samples = tally.check()
    light = TimedWork([0] * len(data), options["speed"])  # the same samples without the work, compared byte by byte
    return {"au": seen.utilisation, "share": seen.utilisation / bound(options), "wall_s": seen.wall, "samples": samples,
            "digest": whole_digest(make(light, **case.arguments), len(light))}


def bound(options):
    """Return the utilisation with no worker idle while work is left, and no idle accelerator while a batch is ready.

    The wall time is at least that of all work spread evenly over the workers and the last step; and at least that
    of the first batch, if all its samples are fast, and all steps.
    """
    n, step = options["samples"] // options["batch"], options["step_ms"]
    cpus = len(os.sched_getaffinity(0))
    workers = options["workers"] if options["work"] == "sleep" else min(options["workers"], cpus)
    work_first = sum(costs(options)) / workers + step
    steps_first = options["batch"] * options["fast_ms"] / workers + n * step
    return n * step / max(work_first, steps_first)


def notes(result):
    options = {**result["options"], **result["prepared"]}
    return [f"Accelerator emulated: a step is {options['step_ms']} ms without computation; utilisation is the time in "
            f"steps over the wall time, from iter() on.",
            f"Work-conserving bound of the utilisation for {options['workers']} workers: {bound(options):.3f}."]


WORKLOAD = Workload(
    title="One sample in ten takes 20 times longer",
    options={"work": "cpu", "samples": 3200, "batch": 16, "workers": 2, "fast_ms": 2.0, "step_ms": 48.0},
    quick={"samples": 64, "fast_ms": 0.2, "step_ms": 5.0},
    cases=lambda options: in_order_both_ways(arguments(options)),
    run=run, prepare=calibrated, notes=notes, ratio="au",
    columns=(Column("utilisation", "au", 3), Column("of the bound", "share", 3), Column("wall s", "wall_s", 1)),
)
