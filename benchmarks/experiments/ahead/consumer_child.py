"""Runs a loader whose consumer becomes twice as fast in the middle; prints the times as a line of JSON.

    python -m benchmarks.experiments.ahead.consumer_child '{"data": ..., "trace": ..., "batch": 4, "step": 0.04,
        "before": 20, "after": 20, "policy": "analytic", "knobs": {}}'
"""

import json
import sys
import time

from drapps.pipeline import mix, read


def open_loader(script):
    """Return a loader with one epoch that is longer than the run.  knobs: fixed values."""
    samples = 2 * script["batch"] * (script["before"] + 2 * script["after"]) / script["step"]
    source = mix([read(script["data"])], length=int(samples) + script["batch"])
    loader = source.decode().resize(96).center_crop(80).loader(
        script["batch"], shuffle=True, outputs="image", output="raw", seek_index="memory", policy=script["policy"],
        trace=script["trace"])  # fmt: skip
    for name, value in script["knobs"].items():
        loader.set(name, value)
    return loader


def consume(loader, step, before, after):
    """Take batches and hold each for a step, later for half a step; return the times of begin, change and end."""
    begun = time.monotonic()
    changed, end = begun + before, begun + before + after
    for _ in loader:
        now = time.monotonic()
        if now >= end:
            break
        time.sleep(step if now < changed else step / 2)
    return {"begun": begun, "changed": changed, "ended": end}


def main(text):
    script = json.loads(text)
    with open_loader(script) as loader:
        times = consume(loader, script["step"], script["before"], script["after"])
    print(json.dumps(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
