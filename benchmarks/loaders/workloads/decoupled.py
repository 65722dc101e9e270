"""Loading in parallel with training: steps of 50 ms, and batches that take one worker 40 ms of CPU."""

from ..case import Case, Column, Workload
from ..consumer import Tally, drain, take_keys
from ..timed_work import TimedWork, calibrated


def cases(options):
    batch = {"batch_size": options["batch"]}
    return [Case("torch, in the consumer", "torch", {**batch, "num_workers": 0}),
            Case("torch, 1 worker", "torch", {**batch, "num_workers": 1}),
            Case("drapps, 1 worker", "drapps", {**batch, "num_workers": 1})]


def run(make, case, options):
    costs = [options["batch_ms"] / options["batch"]] * (options["batch"] * options["steps"])
    tally = Tally(len(costs))
    seen = drain(make(TimedWork(costs, options["speed"]), **case.arguments), options["step_ms"] / 1e3, take_keys(tally))
    tally.check()
    return {"over_steps": seen.wall * 1e3 / (options["step_ms"] * options["steps"]), "au": seen.utilisation}


WORKLOAD = Workload(
    title="Loading in parallel with training",
    options={"work": "cpu", "steps": 200, "batch": 8, "batch_ms": 40.0, "step_ms": 50.0},
    quick={"steps": 8, "batch_ms": 4.0, "step_ms": 5.0},
    cases=cases, run=run, prepare=calibrated,
    columns=(Column("wall over steps", "over_steps", 3), Column("utilisation", "au", 3)),
    notes=lambda result: ["Accelerator emulated.  1: training never waits; 1.8: no overlap."],
)
