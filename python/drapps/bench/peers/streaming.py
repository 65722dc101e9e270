"""MosaicML Streaming: MDS shards of the same JPEG bytes, torch's DataLoader, torchvision v1 transforms on PIL."""

import io
import os
import shutil

from PIL import Image
from torch.utils.data import DataLoader

from .. import workload
from ..peer import installed
from .torch_pil import TRAIN, TorchPil, endless  # makes torchvision importable, which streaming imports

from streaming import MDSWriter, StreamingDataset  # isort: skip


class Samples(StreamingDataset):
    def __getitem__(self, i):
        sample = super().__getitem__(i)
        return TRAIN(Image.open(io.BytesIO(sample["jpg"])).convert("RGB")), sample["cls"]


class Streaming(TorchPil):
    def version(self):
        return installed("mosaicml-streaming", "torch", "torchvision", "pillow")

    def stored(self):
        """The folder of the converted copy."""
        return os.path.join(self.cache, "streaming")

    def prepare(self):
        if os.path.exists(os.path.join(self.stored(), "index.json")):
            return
        shutil.rmtree(self.stored(), ignore_errors=True)
        with MDSWriter(out=self.stored(), columns={"jpg": "bytes", "cls": "int"}) as out:
            for path, label in zip(self.files.paths, self.files.labels):
                with open(path, "rb") as f:
                    out.write({"jpg": f.read(), "cls": label})

    def batches(self, settings):
        data = Samples(local=self.stored(), shuffle=True, batch_size=workload.BATCH)
        return endless(DataLoader(data, batch_size=workload.BATCH, num_workers=settings.get("workers", 2),
                                  prefetch_factor=2, persistent_workers=True, drop_last=True))


PEER = Streaming
