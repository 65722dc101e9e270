"""PyTorch's DataLoader with torchvision v1 transforms on PIL images: the most common setup, and the
reference for pixels."""

import itertools
import random

from PIL import Image, features
from torch.utils.data import DataLoader, Dataset

from .. import workload
from ..peer import Peer, installed
from ..standins import import_torchvision

import_torchvision()
from torchvision import transforms  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402

FINISH = transforms.Compose([transforms.ToTensor(), transforms.Normalize(workload.MEAN, workload.STD)])
TRAIN = transforms.Compose([transforms.RandomResizedCrop(workload.SIZE), transforms.RandomHorizontalFlip(), FINISH])
EPOCHS_JOINED = 200  # workers never stop at the end of an epoch, which is best for torch


def open_rgb(path):
    with open(path, "rb") as f:
        return Image.open(f).convert("RGB")


def crop_pixels(image, box, flip):
    """Return the result of TRAIN for this crop."""
    x, y, w, h = box
    image = F.resized_crop(image, y, x, h, w, [workload.SIZE, workload.SIZE])
    return FINISH(F.hflip(image) if flip else image).numpy()


class ImageList(Dataset):
    def __init__(self, files, read, transform):
        self.files, self.read, self.transform = files, read, transform

    def __len__(self):
        return len(self.files) * EPOCHS_JOINED

    def __getitem__(self, i):
        i %= len(self.files)
        return self.transform(self.read(self.files.paths[i])), self.files.labels[i]


def endless(loader):
    for images, _ in itertools.chain.from_iterable(itertools.repeat(loader)):
        yield images.numpy()


def torch_batches(dataset, settings):
    return endless(DataLoader(dataset, batch_size=workload.BATCH, shuffle=True, drop_last=True,
                              num_workers=settings.get("workers", 2), prefetch_factor=settings.get("prefetch", 2),
                              persistent_workers=True))


class TorchPil(Peer):
    def version(self):
        return f"{installed('torch', 'torchvision', 'pillow')}, libjpeg-turbo {features.version('libjpeg_turbo')}"

    def batches(self, settings):
        return torch_batches(ImageList(self.files, open_rgb, TRAIN), settings)

    def draw(self, settings):
        """Return a crop of each file and its pixels, for runs without drapps, whose loader reports its crops."""
        rng, boxes = random.Random(settings.get("seed", 0)), []
        for i, path in enumerate(self.files.paths):
            with Image.open(path) as image:
                boxes.append({"index": i, "box": workload.draw_box(*image.size, rng), "flip": rng.random() < 0.5})
        return boxes, self.pixels(boxes)

    def pixels(self, boxes):
        return [crop_pixels(open_rgb(self.files.paths[b["index"]]), b["box"], b["flip"]) for b in boxes]


PEER = TorchPil
