"""Another loader reads shards from a server for some seconds, in its own environment, and prints a line of JSON.

    PYTHON remote_peer.py '{"peer": "webdataset", "bench": FOLDER, "url": "http://10.99.0.1:8080", ...}'

bench: the folder of drapps.bench, from which the usual transforms are taken.  ops: whether they run.  "pack": true
writes the shards of MosaicML Streaming instead.
"""

import importlib
import importlib.util
import io
import itertools
import json
import os
import pathlib
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 64


def load_bench(folder):
    """Import the package of the bench by its path: this interpreter has no drapps."""
    spec = importlib.util.spec_from_file_location("drapps_bench", os.path.join(folder, "__init__.py"),
                                                  submodule_search_locations=[folder])  # fmt: skip
    package = importlib.util.module_from_spec(spec)
    sys.modules["drapps_bench"] = package
    spec.loader.exec_module(package)
    return importlib.import_module("drapps_bench.peers.torch_pil").TRAIN


def decoded(train, data):
    from PIL import Image

    return train(Image.open(io.BytesIO(data)).convert("RGB"))


def webdataset_batches(case, train):
    """Endless batches: shards in a random order, samples through a shuffle buffer, as its manual has it."""
    import webdataset

    data = webdataset.WebDataset([f"{case['url']}/{name}" for name in case["shards"]], resampled=True,
                                 shardshuffle=False, empty_check=False)  # fmt: skip
    data = data.shuffle(500).to_tuple("jpg", "cls")
    if case["ops"]:
        data = data.map_tuple(lambda jpg: decoded(train, jpg), int)
    batched = data.batched(BATCH, collation_fn=None if not case["ops"] else webdataset.filters.default_collation_fn)
    return webdataset.WebLoader(batched, batch_size=None, num_workers=case["workers"], prefetch_factor=2)


def streaming_batches(case, train):
    """Endless batches: shards are downloaded to a folder, from a server that is addressed as S3."""
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader

    os.environ.update(S3_ENDPOINT_URL=case["url"], AWS_ACCESS_KEY_ID="any", AWS_SECRET_ACCESS_KEY="any",
                      AWS_DEFAULT_REGION="us-east-1")  # fmt: skip

    class Samples(StreamingDataset):
        def __getitem__(self, i):
            sample = super().__getitem__(i)
            return (decoded(train, sample["jpg"]) if case["ops"] else sample["jpg"]), sample["cls"]

    data = Samples(remote=f"s3://{case['bucket']}", local=case["local"], shuffle=True, batch_size=BATCH)
    options = {} if case["ops"] else {"collate_fn": list}
    loader = DataLoader(data, batch_size=BATCH, num_workers=case["workers"], prefetch_factor=2,
                        persistent_workers=True, **options)  # fmt: skip
    return itertools.chain.from_iterable(itertools.repeat(loader))


def count(batch):
    """Samples of a batch: collated (images, labels), or a list of samples."""
    return len(batch[0]) if hasattr(batch[0], "shape") else len(batch)


def pack(case):
    """Write a folder of class folders as shards of MosaicML Streaming."""
    from streaming import MDSWriter

    folder = pathlib.Path(case["images"])
    classes = {path.name: number for number, path in enumerate(sorted(folder.iterdir()))}
    with MDSWriter(out=case["out"], columns={"jpg": "bytes", "cls": "int"}) as out:
        for path in sorted(folder.rglob("*.*")):
            out.write({"jpg": path.read_bytes(), "cls": classes[path.parent.name]})


def main():
    case = json.loads(sys.argv[1])
    train = load_bench(case["bench"])
    if case.get("pack"):
        pack(case)
        return
    sys.path.insert(0, HERE)
    measure = importlib.import_module("link_meter").measure
    batches = {"webdataset": webdataset_batches, "streaming": streaming_batches}[case["peer"]](case, train)
    print(json.dumps(measure(batches, case["seconds"], count)), flush=True)
    end()


def end():
    """End at once, with the workers: these would end slowly, and hold the pipe to the parent."""
    for pid in reversed(importlib.import_module("drapps_bench.process").tree(os.getpid())[1:]):
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
