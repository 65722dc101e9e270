"""PyTorch's DataLoader with torchvision v2 transforms on uint8 tensors and its JPEG decoder: the
fastest setup of torch."""

import torch

from .. import workload
from ..peer import Peer, installed
from .torch_pil import ImageList, torch_batches

from torchvision.io import ImageReadMode, decode_jpeg, read_file  # after torch_pil, which makes this import possible
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

FINISH = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(workload.MEAN, workload.STD)])
TRAIN = v2.Compose([v2.RandomResizedCrop(workload.SIZE, antialias=True), v2.RandomHorizontalFlip(), FINISH])


def read_rgb(path):
    return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)


def crop_pixels(image, box, flip):
    x, y, w, h = box
    image = F.resized_crop(image, y, x, h, w, [workload.SIZE, workload.SIZE], antialias=True)
    return FINISH(F.horizontal_flip(image) if flip else image).numpy()


class TorchUint8(Peer):
    def version(self):
        return installed("torch", "torchvision")

    def batches(self, settings):
        return torch_batches(ImageList(self.files, read_rgb, TRAIN), settings)

    def pixels(self, boxes):
        return [crop_pixels(read_rgb(self.files.paths[b["index"]]), b["box"], b["flip"]) for b in boxes]


PEER = TorchUint8
