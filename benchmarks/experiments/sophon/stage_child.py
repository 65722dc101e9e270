"""Measures the stages of a loader over a remote set, then runs epochs, and prints a line of JSON.

    python stage_child.py '{"source": "drapps://10.99.0.1:9470/set", "step": 0.1, "batches": 50, "batch": 32, ...}'
"""

import json
import sys
import time

import drapps


def main():
    case = json.loads(sys.argv[1])
    pipe = drapps.read(case["source"]).decode().random_resized_crop(224).random_horizontal_flip()
    for _ in range(case["blurs"]):
        pipe = pipe.gaussian_blur(kernel_size=23, sigma=5.0)
    options = {"batch_size": case["batch"], "output": "numpy"}
    rates = pipe.profile_stages(case["step"], case["batches"], seconds=60, **options)
    batches, begin = 0, time.monotonic()
    with pipe.loader(shuffle=True, seed=1, offload=case["offload"], **options) as loader:
        for _ in range(case["epochs"]):
            for _ in loader:
                time.sleep(case["step"])
                batches += 1
        seconds, stats = time.monotonic() - begin, loader.stats()
    print(json.dumps({**rates.as_dict(), "measured_utilisation": batches * case["step"] / seconds,
                      "prepared": stats["offload_samples"], "why": stats["offload_why"]}))  # fmt: skip


if __name__ == "__main__":
    main()
