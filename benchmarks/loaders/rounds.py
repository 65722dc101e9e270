"""Runs the cases of a workload in rounds, in random order within each round, and collects one result."""

import datetime
import json
import os
import random
import sys
import tempfile

from benchmarks import child_environment
from drapps.bench import runner, stats
from . import workloads


def run_one(name, case, options):
    command = [sys.executable, "-m", "benchmarks.loaders.run_case", name,
               json.dumps({"case": case._asdict(), "options": options})]
    return runner.run_process(command, child_environment())


def in_rounds(name, cases, options, n, seed, say):
    """Run n rounds; return ({case: [figures or None, ...]}, [failures])."""
    rng, failed = random.Random(seed), []
    runs = {case.name: [None] * n for case in cases}
    for k in range(n):
        for case in rng.sample(cases, len(cases)):
            say(f"{name}, round {k + 1} of {n}: {case.name}")
            try:
                runs[case.name][k] = run_one(name, case, options)
            except runner.PeerError as error:
                failed.append({"case": case.name, "round": k + 1, "reason": str(error)})
                say(f"{name}: {case.name}: failed: {error}")
    return runs, failed


def differing(runs):
    """Return the cases whose digest differs from the first one."""
    first = None
    odd = []
    for case, of_case in runs.items():
        digests = {run["digest"] for run in of_case if run and run.get("digest") is not None}
        first = first or digests
        if digests and digests != first:
            odd.append(case)
    return odd


def summarise(cases, runs, workload):
    """Return an entry per case: the spread of each column, and the ratio to the case in `beside`, by round."""
    def figures(case, key):
        return [run and run.get(key) for run in runs.get(case, [])]

    return [{
        "case": case.name, "loader": case.loader, "arguments": case.arguments,
        "figures": {column.key: stats.spread(figures(case.name, column.key)) for column in workload.columns},
        "ratio": stats.paired_ratio(figures(case.name, workload.ratio), figures(case.beside, workload.ratio))
        if case.beside and workload.ratio else None,
        "beside": case.beside, "runs": [run for run in runs[case.name] if run],
    } for case in cases]


def chosen(name, options):
    """Return the workload and all its options; exit for unknown options."""
    workload = workloads.load(name)
    unknown = set(options) - set(workload.options)
    if unknown:
        raise SystemExit(
            f"{name}: options must be among {', '.join(workload.options)}, got {', '.join(sorted(unknown))}"
        )
    return workload, {**workload.options, **options}


def run(name, options=None, rounds=5, seed=0, only=None, command="", say=lambda text: None):
    """Return the result object of a workload.  options: other values than the defaults.  only: names of loaders."""
    workload, given = chosen(name, options or {})
    with tempfile.TemporaryDirectory(prefix="drapps-bench-") as folder:
        known = {**given, **(workload.prepare(given, folder) if workload.prepare else {})}
        cases = [case for case in workload.cases(known) if not only or case.loader in only]
        runs, failed = in_rounds(name, cases, known, rounds, seed, say)
    result = {
        "bench": "loaders", "workload": name, "title": workload.title, "command": command,
        "options": {key: os.path.basename(value) if key == "data" and value else value for key, value in given.items()},
        "prepared": {key: value for key, value in known.items() if key not in given}, "rounds": rounds, "seed": seed,
        "date": datetime.date.today().isoformat(), "machine": runner.machine(), "versions": versions(),
        "cases": summarise(cases, runs, workload), "failed": failed, "differing": differing(runs),
        "compared": sum(1 for of_case in runs.values() for run in of_case if run and run.get("digest") is not None),
    }
    return {**result, "notes": workload.notes(result) if workload.notes else []}


def versions():
    from importlib.metadata import version

    return {name: version(name) for name in ("torch", "drapps")}
