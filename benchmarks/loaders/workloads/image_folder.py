"""A training script on ImageFolder and Compose with only the import changed, compared with the native pipeline."""

import contextlib
import os
import time

import numpy as np
import torch

from drapps.bench import workload as train_224
from drapps.bench.standins import import_torchvision
from ..case import Case, Column, Workload
from ..consumer import WrongSamples

import_torchvision()
from torchvision import transforms  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

FINISH = [transforms.ToTensor(), transforms.Normalize(train_224.MEAN, train_224.STD)]
TRAIN = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), *FINISH])
VALIDATE = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), *FINISH])


def script_loader(make, root, arguments):
    """The two lines of a training script."""
    data = ImageFolder(root, transform=TRAIN)
    return make(data, shuffle=True, **arguments)


def native_loader(root, arguments):
    import drapps

    pipe = drapps.read(root).decode().random_resized_crop(224).random_horizontal_flip()
    pipe = pipe.normalize(mean=train_224.MEAN, std=train_224.STD)
    return pipe.loader(batch_size=arguments["batch_size"], shuffle=True, seed=0)


def write_images(root, n, classes=10):
    """Write smooth random images of many sizes as JPEG files, one folder per class."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(n):
        folder = os.path.join(root, f"class{i % classes}")
        os.makedirs(folder, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        size = tuple(int(side) for side in rng.integers(240, 560, 2))
        image = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), np.int16)
        noisy = np.clip(image + rng.integers(-12, 13, image.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(os.path.join(folder, f"{i:05d}.jpg"), quality=90)


def prepare(options, folder):
    root = options["data"] or os.path.join(folder, "images")
    if not options["data"]:
        write_images(root, options["images"])
    return {"root": root}


def count_labels(labels, root, epochs):
    """Check that every class is delivered as often as it has files: ImageFolder's samples have no other key."""
    want = torch.bincount(torch.tensor(ImageFolder(root).targets)) * epochs
    got = torch.bincount(torch.cat(labels), minlength=len(want))
    if got.tolist() != want.tolist():
        raise WrongSamples(f"samples per class must be {want.tolist()}, got {got.tolist()}")
    return int(got.sum())


def epoch(loader, labels):
    for images, targets in loader:
        train_224.read_batch(images.numpy())
        labels.append(targets.clone())


@contextlib.contextmanager
def nothing_beside_the_data():
    """Keep seek points in memory, without files beside the data."""
    before = os.environ.get("DRAPPS_SEEK_INDEX", "")
    os.environ["DRAPPS_SEEK_INDEX"] = "memory"
    try:
        yield
    finally:
        os.environ["DRAPPS_SEEK_INDEX"] = before


@nothing_beside_the_data()
def run(make, case, options):
    root = options["root"]
    native = case.loader == "native"
    loader = native_loader(root, case.arguments) if native else script_loader(make, root, case.arguments)
    epoch(loader, [])  # starts the workers
    labels, epochs = [], options["epochs"]
    began = time.perf_counter()
    for _ in range(epochs):
        epoch(loader, labels)
    seconds = time.perf_counter() - began
    samples = count_labels([label.long() for label in labels], root, epochs)
    return {"samples_per_s": samples / seconds, "digest": None if native else validation_digest(make, options)}


def validation_digest(make, options):
    """Return a digest of the pixels of the first files without random ops, in levels of 255."""
    data = ImageFolder(options["root"], transform=VALIDATE)
    few = torch.utils.data.Subset(data, range(min(len(data), options["compared"])))
    total = 0
    for i, (images, labels) in enumerate(make(few, batch_size=8, num_workers=1)):
        levels = np.rint(train_224.to_levels(images.numpy())).astype(np.int64)
        total += (i + 1) * int((levels * np.arange(1, levels.size + 1).reshape(levels.shape)).sum()) + int(labels.sum())
    return total


def cases(options):
    workers = options["workers"] or len(os.sched_getaffinity(0))
    arguments = {"batch_size": options["batch"], "num_workers": workers, "persistent_workers": True}
    return [Case("native pipeline", "native", arguments), Case("torch", "torch", arguments, "native pipeline"),
            Case("drapps", "drapps", arguments, "native pipeline")]


WORKLOAD = Workload(
    title="ImageFolder and Compose: RandomResizedCrop(224), flip, ToTensor, Normalize; epochs after the first",
    options={"data": None, "images": 500, "batch": 64, "workers": None, "epochs": 8, "compared": 64},
    quick={"images": 20, "batch": 8, "epochs": 1, "compared": 8},
    cases=cases, run=run, prepare=prepare, ratio="samples_per_s",
    columns=(Column("samples/s", "samples_per_s"),),
    notes=lambda result: ["torch and drapps run the same script; pixels are compared on a validation transform."],
)
