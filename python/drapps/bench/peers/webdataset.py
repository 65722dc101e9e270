"""WebDataset: tar shards of the same JPEG bytes, WebLoader worker processes, torchvision v1 transforms on PIL."""

import io
import os
import random
import tarfile

import webdataset

from .. import workload
from ..peer import installed
from .torch_pil import TRAIN, TorchPil, endless

SHARDS = 8


def add(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def write_shard(path, files, indices):
    with tarfile.open(path + ".tmp", "w") as tar:
        for i in indices:
            with open(files.paths[i], "rb") as f:
                add(tar, f"{i:08d}.jpg", f.read())
            add(tar, f"{i:08d}.cls", str(files.labels[i]).encode())
    os.rename(path + ".tmp", path)


def same(label):
    return label


class WebDataset(TorchPil):
    def version(self):
        return installed("webdataset", "torch", "torchvision", "pillow")

    def _shards(self):
        return [os.path.join(self.cache, f"webdataset-{k}.tar") for k in range(SHARDS)]

    def prepare(self):
        os.makedirs(self.cache, exist_ok=True)
        order = list(range(len(self.files)))
        random.Random(0).shuffle(order)
        for k, path in enumerate(self._shards()):
            if not os.path.exists(path):
                write_shard(path, self.files, order[k::SHARDS])

    def batches(self, settings):
        data = webdataset.WebDataset(self._shards(), resampled=True, shardshuffle=False, empty_check=False)
        data = data.shuffle(len(self.files)).decode("pil").to_tuple("jpg", "cls").map_tuple(TRAIN, same)
        return endless(webdataset.WebLoader(data.batched(workload.BATCH), batch_size=None,
                                            num_workers=settings.get("workers", 2), prefetch_factor=2))


PEER = WebDataset
