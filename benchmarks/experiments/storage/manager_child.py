"""Reads a data set through a cache folder, under the conditions that its parent makes, and prints JSON lines.

    python manager_child.py CONFIG

CONFIG is JSON.  The child prints "ready" and waits for a line before it opens its loader, so that its parent can take
CPUs away from it first.  {"task": "epochs"}: fills the folder and reads it for some epochs.  {"task": "phases"}: keeps
new samples and reads old ones in phases; before each one it prints "phase" and waits for a line.
"""

import itertools
import json
import pathlib
import sys
from collections import Counter

import drapps
from drapps.plan.measured_epochs import hash_epoch, open_loader, run_epoch

BATCH = 16
CODECS = {"none": 0, "lz4": 1, "lz4hc": 2, "zstd": 3, "snappy": 4}  # as the knob "codec" numbers them
AUTO = -1
OLD_OF_A_BATCH = 4  # read again for each new batch: batches that were kept before


def pipeline(kind, data, samples):
    """(pipeline, options of its loader): what is kept are floats, or 8-bit pixels.  Where there are too few images they
    are used again, as samples of their own."""
    paths = [str(path) for path in sorted(pathlib.Path(data).rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg")]
    if not paths:
        sys.exit(f"{data}: has no JPEG files")
    pipe = drapps.read((paths * (1 + samples // len(paths)))[:samples]).decode()
    if kind == "floats":  # what PRESTO calls pixel-centred
        pipe = pipe.resize((224, 224)).normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
        return pipe.random_horizontal_flip(), {"cache_at": "normalize"}
    return pipe.resize((256, 256)).random_crop(224).random_horizontal_flip(), {}


def meet(text):
    """Tells the parent, and waits for it."""
    print(json.dumps(text), flush=True)
    if not sys.stdin.readline():
        sys.exit("the parent has ended")


def choices(path):
    """The events of a trace that say how a sample was kept."""
    return [event for event in drapps.trace.read(path).events if event["event"] == "codec"]


def counted(events):
    """How often each codec was chosen as the best, and how often to measure it anew."""
    return {why: dict(Counter(event["codec"] for event in events if event["why"] == why)) for why in ("best", "probe")}


def run_epochs(config, pipe, options):
    """Fills the folder unless it is filled, then measures and hashes epochs."""
    n = len(pipe)
    with open_loader(pipe, options) as loader:
        loader.set("codec", CODECS.get(config["codec"], AUTO))
        first = run_epoch(loader, n)
        rates = [run_epoch(loader, n, least_seconds=config["seconds"]).rate for _ in range(config["epochs"])]
        digest, stats = hash_epoch(loader).digest, loader.stats()
    kept = stats["cache_written"]
    return {"fill_s": first.seconds, "rates": rates, "hash": digest, "kept": kept, "hits": stats["cache_hits"],
            "share": stats["cache_written_bytes"] / stats["cache_raw_bytes"] if kept else None,
            "choices": counted(choices(config["trace"])), "why": stats["cache_codec"]}  # fmt: skip


def run_phases(config, pipe, options):
    """In each phase keeps new samples, and reads old ones beside them, so that the manager sees the storage."""
    fresh, old, ends, whys = iter(range(len(pipe))), [], [], []
    with open_loader(pipe, {**options, "shuffle": False}, pushed_order=True) as loader:
        batches = loader.batches()
        again = itertools.chain.from_iterable(itertools.repeat(old))
        for phase in config["phases"]:
            meet({"phase": phase})
            for _ in range(config["samples"] // BATCH):
                new = list(itertools.islice(fresh, BATCH))
                wanted = [new, *([next(again) for _ in range(BATCH)] for _ in range(OLD_OF_A_BATCH if old else 0))]
                for ids in wanted:
                    loader.push(ids)
                for _ in wanted:
                    next(batches)
                old += new
            stats = loader.stats()
            ends.append(stats["cache_written"])
            whys.append(stats["cache_codec"])
        loader.push_end()
    events, begins = choices(config["trace"]), [0, *ends]
    return {"phases": [[{name: event[name] for name in ("codec", "why", "stored", "terms")} for event in events[a:b]]
                       for a, b in zip(begins, ends)], "whys": whys}  # fmt: skip


def main():
    config = json.loads(sys.argv[1])
    pipe, more = pipeline(config["kind"], config["data"], config["take"])
    options = {"batch_size": BATCH, "cache": config["folder"], "trace": config["trace"], **more}
    meet("ready")
    print(json.dumps({"epochs": run_epochs, "phases": run_phases}[config["task"]](config, pipe, options)), flush=True)


if __name__ == "__main__":
    main()
