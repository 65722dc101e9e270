"""3D-UNet: volumes of widely varying size, offline and online ops at each access, in Python and as native ops."""

import os
import resource
import statistics
import time

import numpy as np

from benchmarks import volumes
from ..case import Case, Column, Workload, in_order_both_ways
from ..consumer import Tally, drain, fingerprint
from ..volume_sets import Volumes, make_set, write_files


class TimedVolumes(Volumes):
    """Samples also have their CPU time, which is larger beside another worker, as workers share the
    memory bandwidth."""

    def __getitem__(self, key):
        began = time.thread_time_ns()
        sample = super().__getitem__(key)
        return *sample, (time.thread_time_ns() - began) / 1e6


def cases(options):
    arguments = {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"]}
    native = [Case(f"native ops, {words}", "native", {**arguments, "in_order": in_order}, "torch, in order")
              for in_order, words in ((True, "in order"), (False, "in_order=False"))]
    return in_order_both_ways(arguments) + native


def prepare(options, folder):
    """Write the files, and measure the CPU time of each volume alone, for the bound of the utilisation."""
    made = write_files(options, folder)
    data = make_set({**options, **made}, TimedVolumes)
    costs = [data[key][-1] for key in range(len(data))]
    mean_batch = sum(costs) / len(costs) * options["batch"] / options["workers"]
    return {**made, "costs_ms": [round(cost, 3) for cost in costs], "step": options["step_ms"] or round(mean_batch, 2)}


def native_loader(options, arguments):
    pipe = volumes.native(options["images"], options["labels"], patch=(options["crop"],) * 3)
    return pipe.loader(batch_size=arguments["batch_size"], shuffle=True, seed=0, workers=arguments["num_workers"],
                       in_order=arguments["in_order"], memory_limit=int(options["memory_gb"] * 1e9))


def cpu_times():
    """Return the CPU seconds of this process and of its ended children."""
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return np.array([used.ru_utime + used.ru_stime for used in each])


def run(make, case, options):
    tally, digests, costs = Tally(len(options["images"])), [], []

    def take(batch):
        image, label, keys, took = batch
        tally.add(keys)
        costs.extend(took.tolist())
        digests.append(fingerprint(keys, image) + fingerprint(keys, label))

    began = cpu_times()
    if make:
        seen = drain(make(make_set(options, TimedVolumes), **case.arguments), options["step"] / 1e3, take)
    else:
        loader = native_loader(options, case.arguments)
        seen = drain(loader.batches(), options["step"] / 1e3, lambda batch: tally.add(np.asarray(batch.ids)))
        stats = loader.stats()
        costs = [(stats["read_ns"] + stats["work_ns"]) / 1e6 / len(tally.counts)] * len(tally.counts)
    tally.check()
    consumer_s, children_s = (cpu_times() - began).tolist()
    work, until_last = sum(costs), seen.wall * 1e3 - options["step"]
    return {"au": seen.utilisation, "share": seen.utilisation / bound(options["costs_ms"], options),
            "share_in_run": seen.utilisation / bound(costs, options), "busy": work / (workers_of(options) * until_last),
            "work_s": work / 1e3, "consumer_s": consumer_s, "children_s": children_s,
            "first_ms": seen.first * 1e3, "end_ms": seen.end * 1e3,
            "wall_s": seen.wall, "longest_ms": max(seen.waits[1:], default=0) * 1e3,
            "digest": sum(digests) % (1 << 61) if make else None}


def workers_of(options):
    return min(options["workers"], len(os.sched_getaffinity(0)))


def bound(costs, options, rest=0.0):
    """Return the utilisation with no worker idle while work is left, as in skewed.py.  costs: ms of each sample.

    rest: ms of other CPU time, if there are as many workers as CPUs.
    """
    step, workers = options["step"], workers_of(options)
    n = -(-len(costs) // options["batch"])
    first = sum(sorted(costs)[:options["batch"]]) / workers
    return n * step / max((sum(costs) + rest) / workers + step, first + n * step)


def of_each(result, figure, digits=2):
    """Return the median of a figure of the runs as text, for each case in Python."""
    figures = {entry["case"]: [figure(run) for run in entry["runs"]] for entry in result["cases"]
               if entry["loader"] != "native" and entry["runs"]}
    return ", ".join(f"{case} {statistics.median(of_case):.{digits}f}" for case, of_case in figures.items())


def rest_ms(run):
    """Return the CPU time of the consumer's process and of the workers that is not spent on samples."""
    return (run["consumer_s"] + run["children_s"] - run["work_s"]) * 1e3


def share_of_all(run, options):
    """Return the utilisation relative to its bound, with all CPU time of the run counted."""
    n = len(options["costs_ms"])
    return run["au"] / bound([run["work_s"] * 1e3 / n] * n, options, rest_ms(run))


def notes(result):
    options = {**result["options"], **result["prepared"]}
    costs = sorted(options["costs_ms"])
    return [f"A volume alone takes {costs[0]:.0f} to {costs[-1]:.0f} ms in Python, the median "
            f"{costs[len(costs) // 2]:.0f} ms.",
            f"Accelerator emulated, a step is {options['step']} ms; work-conserving bound of the utilisation in Python "
            f"from what the volumes cost alone {bound(costs, options):.3f}.  The bound in the run is made of what the "
            "samples took there: CPU time in Python, time in the worker threads for the native ops.",
            "CPU time of all samples in a run over that alone: "
            f"{of_each(result, lambda run: run['work_s'] * 1e3 / sum(costs))}.",
            "CPU time beside the samples, of the consumer's process and of the workers, over that of the samples: "
            f"{of_each(result, lambda run: rest_ms(run) / 1e3 / run['work_s'])}.  Of a bound that counts it too: "
            f"{of_each(result, lambda run: share_of_all(run, options))}.",
            f"From iter() to the first batch, ms: {of_each(result, lambda run: run['first_ms'], 0)}; from the last "
            f"step to the end of the epoch, ms: {of_each(result, lambda run: run['end_ms'], 0)}.",
            "The Python data set's random choices are keyed by volume: its crops are the same for all loaders.  The "
            "native ops draw their own."]


WORKLOAD = Workload(
    title="3D-UNet's data as a Python data set and as native ops",
    options={"data": None, "volumes": 168, "scale": 0.25, "crop": 32, "batch": 2, "workers": 2, "step_ms": None,
             "memory_gb": 0},
    quick={"volumes": 6, "scale": 0.05, "crop": 8},
    cases=cases, run=run, prepare=prepare, notes=notes, ratio="au",
    columns=(Column("utilisation", "au", 3), Column("of the bound, costs alone", "share", 3),
             Column("of the bound in the run", "share_in_run", 3), Column("workers busy", "busy", 3),
             Column("wall s", "wall_s", 1), Column("longest wait ms", "longest_ms")),
)
