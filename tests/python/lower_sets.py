"""What the tests of lowering share: in-memory data sets without a download, transforms with nothing left to chance, and
the two ways to run them."""

import numpy
import torch

import op_runner

torchvision = op_runner.import_torchvision()
from PIL import Image  # noqa: E402
from torchvision import datasets as D, transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

from drapps.torch.lower_chain import load_rows, lower_chain  # noqa: E402
from drapps.torch.lower_mixed import MixedDataset  # noqa: E402
from drapps.torch.lower_rows import PIL, Form  # noqa: E402

load_rows()


def picture(height=32, width=32, channels=3, seed=0):
    """Noise over a slope, so that every op has something to change."""
    rng = numpy.random.default_rng(seed)
    slope = numpy.linspace(0, 160, height * width * channels).reshape(height, width, channels)
    return (slope + rng.integers(0, 90, slope.shape)).astype(numpy.uint8)


def to_pil(array):
    return Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)


def lowered(transform, channels=3):
    """What becomes of a transform on PIL images."""
    return lower_chain(transform, Form(PIL, channels=channels))


def run(chain, array):
    """An image through the native part of a chain and the Python rest."""
    image = to_pil(array)
    if chain.ops or not chain.form.is_pil:
        image = MixedDataset(None, None, chain.ops, chain.form, ()).transform_natively(array)
    for transform in chain.rest:
        image = transform(image)
    return image


def assert_same(got, want, steps=0, share=0.0):
    """The same type and numbers: at most a share of them apart, by at most so many steps."""
    assert type(got) is type(want)
    if isinstance(want, Image.Image):
        assert (got.mode, got.size) == (want.mode, want.size)
        got, want = torch.from_numpy(numpy.array(got)), torch.from_numpy(numpy.array(want))
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    apart = (got.double() - want.double()).abs()
    assert apart.max() <= steps, f"differs by {apart.max()}"
    assert (apart > 0).double().mean() <= share


def fake(kind, **attributes):
    """A data set of torchvision's as its constructor leaves it."""
    made = kind.__new__(kind)
    made.__dict__.update(root="nowhere", transform=None, target_transform=None, transforms=None, **attributes)
    return made


def cifar(n=10, transform=None, kind=D.CIFAR10):
    data = numpy.stack([picture(seed=i) for i in range(n)])
    made = fake(kind, data=data, targets=[i % 4 for i in range(n)])
    made.transform = transform
    return made


def mnist(n=10, transform=None, kind=D.MNIST):
    data = torch.from_numpy(numpy.stack([picture(28, 28, 1, seed=i)[..., 0] for i in range(n)]))
    made = fake(kind, data=data, targets=torch.arange(n) % 4)
    made.transform = transform
    return made


def svhn(n=10, transform=None):
    data = numpy.stack([picture(seed=i).transpose(2, 0, 1) for i in range(n)])
    made = fake(D.SVHN, data=data, labels=numpy.arange(n) % 4)
    made.transform = transform
    return made


class Doubled(torch.nn.Module):
    """A transform of a user."""

    def forward(self, image):
        return image


def identity(image):
    """A function of a user."""
    return image


__all__ = ["D", "Doubled", "assert_same", "cifar", "fake", "identity", "lowered", "mnist", "picture", "run", "svhn",
           "to_pil", "v1", "v2"]  # fmt: skip
