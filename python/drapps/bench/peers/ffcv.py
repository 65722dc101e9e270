"""FFCV with the original JPEG files.

FFCV re-encodes what it stores; to keep the pixels, the field below writes the bytes of the file instead.  Its decoder
uses the fast DCT and its resize is a box filter, so the pixels differ all the same.
"""

import os

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.fields.rgb_image import IMAGE_MODES
from ffcv.libffcv import imdecode, resize_crop
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image

from .. import workload
from ..peer import Peer, installed

MEAN, STD = (np.array(v) * 255 for v in (workload.MEAN, workload.STD))
EPOCHS_JOINED = 200  # the loader pauses at the end of an epoch, so a long epoch is best for it


class KeptJpegField(RGBImageField):
    """Stores (bytes, width, height) of a JPEG file like FFCV's jpg mode, but without encoding it again."""

    def encode(self, destination, sample, malloc):
        data, destination["width"], destination["height"] = sample
        destination["mode"] = IMAGE_MODES["jpg"]
        destination["data_ptr"], storage = malloc(data.nbytes)
        storage[:] = data


class JpegList:
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path = self.files.paths[i]
        with Image.open(path) as image:
            width, height = image.size
        return (np.fromfile(path, np.uint8), width, height), self.files.labels[i]


class Ffcv(Peer):
    def version(self):
        return installed("ffcv", "torch")

    def _path(self):
        return os.path.join(self.cache, "kept.beton")

    def prepare(self):
        if os.path.exists(self._path()):
            return
        os.makedirs(self.cache, exist_ok=True)
        temporary = self._path() + ".tmp"
        fields = {"image": KeptJpegField(write_mode="jpg"), "label": IntField()}
        DatasetWriter(temporary, fields, num_workers=1, page_size=1 << 24).from_indexed_dataset(JpegList(self.files))
        os.rename(temporary, self._path())

    def batches(self, settings):
        size = workload.SIZE, workload.SIZE
        image = [RandomResizedCropRGBImageDecoder(size, scale=workload.SCALE, ratio=workload.RATIO),
                 RandomHorizontalFlip(0.5), NormalizeImage(MEAN, STD, np.float32), ToTensor(),
                 ToTorchImage(channels_last=False, convert_back_int16=False)]
        loader = Loader(self._path(), batch_size=workload.BATCH, num_workers=settings.get("workers", 2),
                        order=OrderOption.RANDOM, os_cache=True, drop_last=True,
                        batches_ahead=settings.get("ahead", 2), custom_fields={"image": KeptJpegField},
                        indices=np.tile(np.arange(len(self.files)), EPOCHS_JOINED),
                        pipelines={"image": image, "label": [IntDecoder(), ToTensor(), Squeeze()]})
        while True:
            for images, _ in loader:
                yield images.numpy()

    def pixels(self, boxes):
        for b in boxes:
            (data, width, height), _ = JpegList(self.files)[b["index"]]
            whole = np.empty((height, width, 3), np.uint8)
            imdecode(data, whole, height, width, height, width)
            x, y, w, h = b["box"]
            image = np.empty((workload.SIZE, workload.SIZE, 3), np.uint8)
            resize_crop(whole, y, y + h, x, x + w, image)
            image = image[:, ::-1] if b["flip"] else image
            yield ((image - MEAN) / STD).transpose(2, 0, 1)


PEER = Ffcv
