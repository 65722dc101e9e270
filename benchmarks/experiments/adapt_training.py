"""training: a network trains on the CPUs that load its data; a policy against every static worker count."""

import json
import random
import subprocess
import sys
from typing import NamedTuple

from benchmarks import child_environment
from benchmarks.experiments import statistics

DRAPPS_AUTO = "drapps, workers not given"
TORCH_DEFAULT = "torch, workers not given"


class Contender(NamedTuple):
    """A loader of train_child.py."""

    name: str
    loader: str
    workers: str
    policy: str = "off"


def contenders():
    """Return drapps with a policy, drapps with each worker count, and torch."""
    static = [Contender(f"drapps, {n} workers", "drapps", str(n)) for n in (1, 2, 3, 4)]
    peers = [Contender(TORCH_DEFAULT, "torch", "auto"), Contender("torch, 2 workers", "torch", "2")]
    return [Contender(DRAPPS_AUTO, "drapps", "auto", "analytic"), *static, *peers]


def run_one(contender, data, samples):
    """Return seconds, samples and loss of a training run."""
    command = [sys.executable, "-m", "benchmarks.experiments.train_child", "--data", data, "--loader", contender.loader,
               "--workers", contender.workers, "--samples", str(samples)]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True,
                         env=child_environment(DRAPPS_POLICY=contender.policy))  # fmt: skip
    if run.returncode:
        raise RuntimeError(f"{contender.name}: {run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def measure(cells, options, data, say):
    """Run the rounds; return {contender's name: [seconds of each round]}."""
    found = contenders()
    runs = {contender.name: [] for contender in found}
    for k in range(options.pairs):
        for contender in random.Random(f"{options.seed} training {k}").sample(found, len(found)):
            key = ("training", contender.name, k, options.samples)

            def one(contender=contender, key=key):
                say(" · ".join(map(str, key)))
                return run_one(contender, data, options.samples)

            runs[contender.name].append(cells.get(key, one)["seconds"])
    return runs


def compare(runs):
    """Return a row per contender: its time, and the speed of the adaptive loader relative to it, round by round."""
    rows = []
    for name, seconds in runs.items():
        ratios = [theirs / ours for theirs, ours in zip(seconds, runs[DRAPPS_AUTO], strict=True)]
        rows.append({"name": name, "seconds": statistics.summary(seconds),
                     "equivalence": statistics.equivalence(ratios) if len(ratios) > 1 else None})  # fmt: skip
    return rows
