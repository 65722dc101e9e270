"""Reads JPEGs of one size in one way, and prints JSON: samples a second of each epoch, and a hash.

    python size_child.py CONFIG

"native" is a loader, with cache_memory where config["memory"] is not 0.  "handoff" is what many programs do: a pool of
threads that is given one sample at a time.
"""

import concurrent.futures
import hashlib
import json
import sys
import time

import drapps
from drapps.plan.measured_epochs import hash_epoch, open_loader, run_epoch


def native(pipe, config):
    """A loader: the first epoch fills the memory, if there is any, and is not measured."""
    options = {"batch_size": config["batch"], "workers": config["threads"], "seek_index": "off",
               "collate": {"image": "list"}}  # fmt: skip
    if config["memory"]:
        options.update(cache_memory=config["memory"], cache_at="decode")
    with open_loader(pipe.random_horizontal_flip(), options) as loader:
        run_epoch(loader, len(pipe))
        rates = [run_epoch(loader, len(pipe), least_seconds=config["seconds"]).rate for _ in range(config["epochs"])]
        return {"rates": rates, "hash": hash_epoch(loader).digest, "kept": loader.stats()["cache_memory_hits"] > 0}


def handoff(pipe, config):
    """A pool of threads, a sample for each call; what a call does is native, and needs no lock of Python's."""
    def sample(i):
        return pipe[i]["image"]

    with concurrent.futures.ThreadPoolExecutor(config["threads"]) as pool:
        digest = hashlib.blake2b(digest_size=16)
        for image in pool.map(sample, range(len(pipe))):
            digest.update(image)
        rates = []
        for _ in range(config["epochs"]):
            samples, begun = 0, time.monotonic()
            while time.monotonic() - begun < config["seconds"] or not samples:
                samples += sum(1 for _ in pool.map(sample, range(len(pipe))))
            rates.append(samples / (time.monotonic() - begun))
    return {"rates": rates, "hash": digest.hexdigest()}


def main():
    config = json.loads(sys.argv[1])
    pipe = drapps.read(config["folder"]).decode()
    print(json.dumps({"native": native, "handoff": handoff}[config["way"]](pipe, config)))


if __name__ == "__main__":
    main()
