"""LitData: chunks of the same JPEG bytes, its StreamingDataLoader, torchvision v1 transforms on PIL."""

import io
import os
import shutil

from PIL import Image

from .. import workload
from ..peer import installed
from .torch_pil import TRAIN, TorchPil, endless  # makes torchvision importable, which litdata may import

import litdata  # isort: skip


def read_file(entry):
    path, label = entry
    with open(path, "rb") as f:
        return {"jpg": f.read(), "cls": label}


class Samples(litdata.StreamingDataset):
    def __getitem__(self, i):
        sample = super().__getitem__(i)
        return TRAIN(Image.open(io.BytesIO(sample["jpg"])).convert("RGB")), sample["cls"]


class LitData(TorchPil):
    def version(self):
        return installed("litdata", "torch", "torchvision", "pillow")

    def stored(self):
        """The folder of the converted copy."""
        return os.path.join(self.cache, "litdata")

    def prepare(self):
        if os.path.exists(os.path.join(self.stored(), "index.json")):
            return
        shutil.rmtree(self.stored(), ignore_errors=True)
        litdata.optimize(fn=read_file, inputs=list(zip(self.files.paths, self.files.labels)),
                         output_dir=self.stored(), chunk_bytes="64MB", num_workers=1, start_method="fork")

    def batches(self, settings):
        data = Samples(self.stored(), shuffle=True, drop_last=True)
        return endless(litdata.StreamingDataLoader(data, batch_size=workload.BATCH, drop_last=True,
                                                   num_workers=settings.get("workers", 2), prefetch_factor=2,
                                                   persistent_workers=True))


PEER = LitData
