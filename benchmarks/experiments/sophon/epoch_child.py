"""Runs the epochs of one loader over a remote set and prints a line of JSON for each, and a last one.

    python epoch_child.py '{"source": "drapps://10.99.0.1:9470/train", "offload": "auto", "epochs": 3, ...}'
"""

import hashlib
import json
import pathlib
import sys
import time

import drapps


def received():
    """Bytes that this host has received on its link, with the headers of the packets."""
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("link0:"):
            return int(line.split(":")[1].split()[0])
    return 0


def options_of(case):
    """Of the loader: those of the case that are its own."""
    given = {name: case[name] for name in ("workers", "trace", "cache_memory", "cache_at") if case.get(name)}
    if case["source"].startswith("drapps"):
        return {"offload": case["offload"], **given}
    return {"ranges": case.get("ranges", "off"), **given}


def plans(trace):
    """[seconds, samples, of so many] of each plan of offload."""
    begin = min((flow.time for flow in trace.flow), default=0)
    return [{"at": event["t"] - begin, "samples": event["samples"], "of": event["of"], "bytes": event["bytes"]}
            for event in trace.events if event["event"] == "offload"]  # fmt: skip


def main():
    case = json.loads(sys.argv[1])
    pipe = drapps.read(case["source"]).decode().random_resized_crop(224).random_horizontal_flip()
    pipe = pipe.normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
    with pipe.loader(batch_size=case["batch"], shuffle=True, seed=1, output="numpy", **options_of(case)) as loader:
        for epoch in range(case["epochs"]):
            loader.set_epoch(epoch)
            digest, n = hashlib.sha256(), 0
            begin, cpu, before = time.monotonic(), time.process_time(), received()
            for images, labels in loader:
                digest.update(images[:, :, ::37, ::41].tobytes())  # a part: hashing all would be the bottleneck
                digest.update(labels.tobytes())
                n += len(labels)
                time.sleep(case["step"])
            stats = loader.stats()
            print(json.dumps({"seconds": time.monotonic() - begin, "cpu_s": time.process_time() - cpu,
                              "bytes": received() - before, "samples": n, "hash": digest.hexdigest(),
                              "prepared": stats.get("offload_samples", 0), "shed": stats.get("offload_shed", 0),
                              "segments": stats.get("segment_samples", 0),
                              "phase": stats.get("offload_phase", "")}), flush=True)  # fmt: skip
        lines = [line for line in loader.explain().splitlines() if line.startswith(("offload:", "ranges:"))]
    made = plans(drapps.trace.read(case["trace"])) if case.get("trace") else []
    print(json.dumps({"explain": lines, "plans": made}))


if __name__ == "__main__":
    main()
