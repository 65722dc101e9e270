"""Runs a loader alternately with and without a monitor, a trace, or a policy, and prints a line of JSON.

    python -m benchmarks.experiments.monitor.loader_child throughput DATA PAIRS SECONDS SEED
    python -m benchmarks.experiments.monitor.loader_child trace DATA PAIRS SECONDS SEED
    python -m benchmarks.experiments.monitor.loader_child decisions DATA PAIRS SECONDS SEED

Every epoch is the same work: nothing in the chain is random.  A pair is measured in one process, in random order, since
processes differ from each other by more than the effect to be measured.
"""

import itertools
import json
import os
import random
import sys
import tempfile
import time

from benchmarks.experiments.monitor.readings import TRACER, ThreadShare, monitor_threads
from drapps.monitor import Monitor
from drapps.pipeline import read

BATCH, WARM_UP = 32, 3


def open_loader(data, **options):
    """Return a loader of a folder's JPEG files, decoded, resized and cropped."""
    return read(data).decode().resize(160).center_crop(144).loader(
        BATCH, outputs="image", output="raw", seek_index="memory", **options)  # fmt: skip


def _epochs(loader, n):
    """Return seconds and samples of n epochs."""
    begun = time.monotonic()
    samples = sum(batch.samples for _ in range(n) for batch in loader.batches())
    return time.monotonic() - begun, samples


def by_turns(pairs, seed, first, second):
    """Return [[first(), second()], ...]; the order within each pair is random."""
    rng, results = random.Random(seed), []
    for _ in range(pairs):
        found = {}
        for measure in rng.sample((first, second), 2):
            found[measure] = measure()
        results.append([found[first], found[second]])
    return results


# --- throughput ---


def throughput(data, pairs, seconds, seed):
    """Return seconds for the same epochs, with and without a monitor."""
    with open_loader(data) as loader:
        took = min(_epochs(loader, 1)[0] for _ in range(WARM_UP))
        epochs, samples = max(1, round(seconds / took)), 0

        def alone():
            nonlocal samples
            assert not monitor_threads()  # else it would not be alone
            took, samples = _epochs(loader, epochs)
            return took

        def beside():
            with Monitor():
                assert len(monitor_threads()) == 1
                return _epochs(loader, epochs)[0]

        return {"pairs": by_turns(pairs, seed, beside, alone), "samples": samples}


# --- traces ---


def trace(data, pairs, seconds, seed):
    """Return seconds for the same epochs with and without a trace, both beside a monitor; and the cost of the trace."""
    takes, counted = [], {}

    def run(**options):
        with Monitor() as monitor, open_loader(data, policy="fixed", resource_monitor=monitor, **options) as loader:
            took = min(_epochs(loader, 1)[0] for _ in range(WARM_UP))
            epochs = counted.setdefault("epochs", max(1, round(seconds / took)))
            share = ThreadShare(TRACER) if options else None
            took, counted["samples"] = _epochs(loader, epochs)
            return took, share and share.get()

    def traced():
        with tempfile.TemporaryDirectory(prefix="drapps-experiment-") as folder:
            path, begun = os.path.join(folder, "run.drtrace"), time.monotonic()
            took, share = run(trace=path)
            takes.append((share, os.path.getsize(path) / (time.monotonic() - begun)))
            return took

    def untraced():
        return run()[0]

    found = by_turns(pairs, seed, traced, untraced)
    writer_share, bytes_per_s = (sum(values) / pairs for values in zip(*takes, strict=True))
    return {"pairs": found, "samples": counted["samples"], "writer_share": writer_share, "bytes_per_s": bytes_per_s}


# --- decisions ---


def decisions(data, pairs, seconds, seed):
    """Return the CPU shares of the monitor's thread, with and without a policy; and decisions per second."""
    made = []

    def run(options):
        with Monitor() as monitor, open_loader(data, **options(monitor)) as loader:
            _until(loader, time.monotonic() + 1)
            share, number, begun = ThreadShare(), loader.stats()["decisions"], time.monotonic()
            _until(loader, begun + seconds)
            made.append((loader.stats()["decisions"] - number) / (time.monotonic() - begun))
            return share.get()

    def deciding():
        return run(lambda monitor: {"policy": "analytic", "resource_monitor": monitor})

    def watching():
        return run(lambda monitor: {"policy": "fixed"})

    found = by_turns(pairs, seed, deciding, watching)
    return {"pairs": found, "decisions_per_s": sum(made) / pairs}  # runs without a policy made none


def _until(loader, end):
    for _ in itertools.chain.from_iterable(itertools.repeat(loader)):
        if time.monotonic() >= end:
            break


def main(what, data, pairs, seconds, seed):
    measure = {"throughput": throughput, "trace": trace, "decisions": decisions}[what]
    print(json.dumps(measure(data, int(pairs), float(seconds), int(seed))))


if __name__ == "__main__":
    main(*sys.argv[1:])
