"""Runs the epochs of one loader over a remote set and prints a line of JSON for each.

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


def main():
    case = json.loads(sys.argv[1])
    pipe = drapps.read(case["source"]).decode().random_resized_crop(224).random_horizontal_flip()
    pipe = pipe.normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
    options = {"offload": case["offload"]} if case["source"].startswith("drapps") else {"ranges": case["ranges"]}
    if case.get("workers"):
        options["workers"] = case["workers"]
    with pipe.loader(batch_size=case["batch"], shuffle=True, seed=1, output="numpy", **options) as loader:
        for epoch in range(case["epochs"]):
            loader.set_epoch(epoch)
            digest, n = hashlib.sha256(), 0
            begin, before = time.monotonic(), received()
            for images, labels in loader:
                digest.update(images[:, :, ::37, ::41].tobytes())  # a part: hashing all would be the bottleneck
                digest.update(labels.tobytes())
                n += len(labels)
                time.sleep(case["step"])
            stats = loader.stats()
            print(json.dumps({"seconds": time.monotonic() - begin, "bytes": received() - before, "samples": n,
                              "hash": digest.hexdigest(), "prepared": stats.get("offload_samples", 0),
                              "shed": stats.get("offload_shed", 0)}), flush=True)  # fmt: skip
        lines = [line for line in loader.explain().splitlines() if line.startswith(("offload:", "ranges:"))]
        print(json.dumps({"explain": lines}))


main()
