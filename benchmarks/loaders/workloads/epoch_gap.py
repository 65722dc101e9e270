"""From the last step of an epoch to the first batch of the next, with persistent and with new workers."""

from statistics import mean

from ..case import Case, Column, Workload
from ..consumer import Tally, drain, take_keys, whole_digest
from ..timed_work import TimedWork, rounds_per_ms


def cases(options):
    made = []
    for persistent, words in ((False, "new workers"), (True, "persistent_workers")):
        arguments = {"batch_size": options["batch"], "shuffle": True, "num_workers": options["workers"],
                     "persistent_workers": persistent}
        made += [Case(f"torch, {words}", "torch", arguments),
                 Case(f"drapps, {words}", "drapps", arguments, f"torch, {words}")]
    return made


def run(make, case, options):
    data = TimedWork([options["sample_ms"]] * options["samples"], rounds_per_ms())
    loader, tally = make(data, **case.arguments), Tally(options["samples"])
    digest = whole_digest(loader, len(data))
    drained = [drain(loader, options["step_ms"] / 1e3, take_keys(tally)) for _ in range(options["epochs"])]
    tally.check(options["epochs"])
    pauses = [before.end + after.first for before, after in zip(drained, drained[1:])]
    return {"pause_ms": mean(pauses) * 1e3, "longest_ms": max(pauses) * 1e3, "digest": digest}


WORKLOAD = Workload(
    title="The pause between epochs",
    options={"samples": 256, "sample_ms": 1, "batch": 16, "workers": 2, "step_ms": 10, "epochs": 11},
    quick={"samples": 16, "epochs": 2, "batch": 4},
    cases=cases, run=run, ratio="pause_ms",
    columns=(Column("pause ms", "pause_ms", 1), Column("longest ms", "longest_ms", 1)),
)
