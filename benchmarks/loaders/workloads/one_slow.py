"""One sample of 2 s among samples of 10 ms: the waiting of the consumer, in units of its steps."""

from ..case import Column, Workload, in_order_both_ways
from ..consumer import Tally, drain, take_keys
from ..timed_work import TimedWork


def arguments(options):
    return {"batch_size": options["batch"], "num_workers": options["workers"]}


def run(make, case, options):
    costs = [options["fast_ms"]] * options["samples"]
    costs[len(costs) // 3] = options["slow_ms"]
    tally = Tally(len(costs))
    seen = drain(make(TimedWork(costs, None), **case.arguments), options["step_ms"] / 1e3, take_keys(tally))
    tally.check()
    waits = [wait * 1e3 / options["step_ms"] for wait in seen.waits[1:]]  # the first batch always has to be waited for
    return {"longest": max(waits), "total": sum(waits), "au": seen.utilisation}


WORKLOAD = Workload(
    title="One slow sample among fast ones (both sleep)",
    options={"samples": 800, "batch": 8, "workers": 2, "fast_ms": 10, "slow_ms": 2000, "step_ms": 100},
    quick={"samples": 48, "fast_ms": 1, "slow_ms": 100, "step_ms": 10},
    cases=lambda options: in_order_both_ways(arguments(options)), run=run,
    columns=(Column("longest wait, steps", "longest", 2), Column("all waits, steps", "total", 2),
             Column("utilisation", "au", 3)),
    notes=lambda result: ["Accelerator emulated.  Waits after the first batch."],
)
