"""The data sets that have a native form: how each is recognised, read in Python, and opened natively.

A family knows a torch or torchvision class by the functions it would call: a subclass is of the family as long as it
changes nothing of them.
"""

import functools
import json
import os
import sys

import numpy
import torch

from drapps import _core
from drapps.optable import Op
from drapps.pipeline import Pipeline, from_arrays
from drapps.torch.lower_exact_code import check_class, inherits, is_of_library, own_attributes
from drapps.torch.lower_rows import PIL, Form, NotNative

# Codecs that read what Pillow reads.  The others refuse some of it by design, which can be left to Pillow only where
# samples are made one by one.
COMPLETE = ("jpeg", "png", "webp", "bmp", "pnm")


def home(module, name):
    """A class of a module that the program has imported, or None."""
    return getattr(sys.modules.get(module), name, None)


class Family:
    """What all families do alike.  A data set of it is `leaf` here."""

    module = base = ""
    reads: tuple[str, ...] = ("__getitem__",)
    attributes: tuple[str, ...] = ("transform", "target_transform")
    goes_on = False  # reads another sample where one cannot be read
    mixes = True  # single samples may be made natively up to the first Python code
    why_not_whole: str | None = None  # a reason why batches cannot be made natively though single samples can

    def matches(self, leaf):
        """Whether the data set is of this family; NotNative when only almost."""
        base = home(self.module, self.base)
        if base is None or not isinstance(leaf, base):
            return False
        if not inherits(type(leaf), base, self.reads):
            raise NotNative(f"{type(leaf).__name__} reads its items in its own way")
        check_object_reads(leaf)
        check_class(base, (torch.utils.data.Dataset, object))
        own_attributes(leaf, self.attributes)
        return True

    def transform(self, leaf):
        """What it calls with each image."""
        return leaf.transform

    def first_ops(self, leaf):
        """What the data set itself does before its transform."""
        return ()

    def pipeline(self, native, ops):
        """The native data set with all ops."""
        pipe = Pipeline(native)
        for op in ops:
            pipe = pipe.op(op)
        return pipe

    def check_used(self, leaf, chain, used):
        """NotNative where one of the samples (indices of the native data set) would come out otherwise."""

    def finish(self, leaves, starts):
        """For a collate_fn that only zips: a function from a native batch to what it makes.  None: there is none.

        starts: the native id of the first sample of each leaf."""
        return None

    def partly(self, leaf):
        """Where single samples may not be made natively though others are: what becomes of them, for a line of text."""
        return ""

    def form(self, leaf):
        """What its transform gets; None without images."""
        raise NotImplementedError

    def fields(self, leaf):
        """The fields of a batch, in the order of default_collate's list."""
        return ("image", "label")

    def keep(self, leaf):
        """What has to stay as it is for the native data set to stay true."""
        raise NotImplementedError

    def still(self, leaf, kept):
        """Whether the data set is as it was."""
        raise NotImplementedError

    def open(self, leaf):
        """The native data set."""
        raise NotImplementedError

    def fetch(self, leaf, index):
        """(what the native ops are fed with, target) of one item."""
        raise NotImplementedError


def place_of(array):
    """Where an array or a tensor lies, and what it is there: all else that changes in it, its memory shows."""
    if isinstance(array, torch.Tensor):
        return array.data_ptr(), array.dtype, tuple(array.shape), array.stride()
    return array.ctypes.data, array.dtype, array.shape, array.strides


def check_object_reads(leaf):
    """NotNative when the object itself replaces what reads items."""
    if any(name in vars(leaf) for name in ("__getitem__", "__getitems__")):
        raise NotNative("reading items was replaced on the object")


class Files(Family):
    """torchvision's ImageFolder and DatasetFolder with its own loader for PIL images."""

    module, base = "torchvision.datasets.folder", "DatasetFolder"
    attributes = ("samples", "loader", *Family.attributes)

    def matches(self, leaf):
        """Only with the default loader, on PIL, as strict as Pillow is by default."""
        if not super().matches(leaf):
            return False
        folder = sys.modules[self.module]
        loaders = (folder.default_loader, folder.pil_loader)
        if not any(leaf.loader is loader for loader in loaders):
            raise NotNative("has a loader of its own")
        if not all(is_of_library(loader, folder) for loader in loaders):
            raise NotNative("torchvision's loader was replaced")
        if sys.modules["torchvision"].get_image_backend() != "PIL":
            raise NotNative("torchvision's image backend is not PIL")
        return self.check_files(leaf)

    def samples(self, leaf):
        """Its list of (path, label)."""
        return leaf.samples

    def root(self, leaf):
        """The folder of its files, or None."""
        return leaf.root

    def check_files(self, leaf):
        """NotNative where drapps reads none of the files, or not as Pillow would."""
        check_pillow()
        samples = self.samples(leaf)
        if type(samples) is not list or not samples:
            raise NotNative("its samples are not a list of files")
        if not any(map(_is_decodable, samples)):
            raise NotNative(f"drapps decodes none of its files ({samples[0][0]}, ...)")
        return True

    def partly(self, leaf):
        """Where drapps decodes some of the files only: what becomes of the others."""
        return "" if all(map(_is_decodable, self.samples(leaf))) else "; files that drapps does not decode: Python"

    def first_ops(self, leaf):
        """Files are decoded."""
        return (decode_op(),)

    def form(self, leaf):
        """pil_loader converts to RGB."""
        return Form(PIL)

    def keep(self, leaf):
        """Its rows: comparing them takes a few milliseconds for a million."""
        return list(self.samples(leaf))

    def still(self, leaf, kept):
        """Same files and labels."""
        return kept == self.samples(leaf)

    def open(self, leaf):
        """Files that no codec reads, or not each of their kind, would fail one by one, so they are refused here."""
        root = self.root(leaf)
        return _core.open_files(self.samples(leaf), _extensions(COMPLETE), None if root is None else os.fspath(root))

    def fetch(self, leaf, index):
        """The bytes of the file."""
        path, target = self.samples(leaf)[index]
        with open(path, "rb") as file:
            return file.read(), target


def check_pillow():
    """NotNative where Pillow is set to accept what drapps refuses."""
    from PIL import ImageFile

    if ImageFile.LOAD_TRUNCATED_IMAGES:
        raise NotNative("Pillow is set to load truncated images")


def decode_op():
    """Pillow refuses images of more than twice its limit."""
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    return Op("decode", {"max_pixels": 10**12 if limit is None else 2 * int(limit)})


def check_decodable(paths):
    """NotNative where drapps has no codec for one of the files."""
    for path in paths:
        if not _is_decodable((path,)):
            raise NotNative(f"drapps does not decode {path}")


def _is_decodable(sample):
    """Whether drapps has a codec for a file of that name; what is no name, opening the file will tell."""
    try:
        return os.fsdecode(sample[0]).lower().endswith(_extensions())
    except (TypeError, LookupError):
        return True


@functools.cache
def _extensions(names=None):
    """File name extensions of these image codecs; None: of all that this build has."""
    codecs = [codec for codec in json.loads(_core.codecs_json()) if codec["kind"] == "image"]
    return tuple(e for codec in codecs if names is None or codec["name"] in names for e in codec["extensions"])


class Pixels(Family):
    """Images in an array, labels beside them; fetch makes of a row what Image.fromarray would get."""

    labels = "targets"
    channels = 3

    @property
    def attributes(self):
        """Those that items are read from."""
        return ("data", self.labels, *Family.attributes)

    def matches(self, leaf):
        """The arrays are shared with the native data set: bytes, in the order of their axes."""
        return super().matches(leaf) and self.check(leaf)

    def check(self, leaf):
        """NotNative unless data and labels fit."""
        data, labels = leaf.data, getattr(leaf, self.labels)
        if type(data) not in (numpy.ndarray, torch.Tensor) or str(data.dtype).rpartition(".")[2] != "uint8":
            raise NotNative("its data is not an array of bytes")
        if len(data) != len(labels) or not len(data):
            raise NotNative(f"has {len(data)} images and {len(labels)} labels")
        self.label_array(leaf)
        return True

    def form(self, leaf):
        """Mode RGB or L."""
        return Form(PIL, channels=self.channels)

    def label_array(self, leaf):
        """The labels as int64; shared where they are an array of int64 already."""
        labels = getattr(leaf, self.labels)
        if type(labels) is list and set(map(type, labels)) == {int}:
            return numpy.array(labels, dtype=numpy.int64)
        if type(labels) in (numpy.ndarray, torch.Tensor) and str(labels.dtype).endswith("int64") and labels.ndim == 1:
            return numpy.ascontiguousarray(labels)
        raise NotNative(f"its {self.labels} are not whole numbers")

    def keep(self, leaf):
        """Where the array is, which is shared, and a copy of the labels."""
        return place_of(leaf.data), self.label_array(leaf).copy()

    def still(self, leaf, kept):
        """Same array, same labels."""
        return place_of(leaf.data) == kept[0] and numpy.array_equal(self.label_array(leaf), kept[1])

    def open(self, leaf):
        """Over the same memory."""
        pixels = numpy.asarray(leaf.data)
        if not pixels.flags.c_contiguous:
            raise NotNative("its data is not in the order of its axes")
        return from_arrays(image=pixels, label=self.label_array(leaf)).dataset


class Cifar(Pixels):
    """CIFAR10 and CIFAR100."""

    module, base = "torchvision.datasets.cifar", "CIFAR10"

    def check(self, leaf):
        """(n, height, width, 3)."""
        if leaf.data.ndim != 4 or leaf.data.shape[3] != 3 or type(leaf.data) is not numpy.ndarray:
            raise NotNative(f"its data has the shape {tuple(leaf.data.shape)}")
        return super().check(leaf)

    def fetch(self, leaf, index):
        """A row."""
        return leaf.data[index], leaf.targets[index]


class Mnist(Pixels):
    """MNIST, FashionMNIST, KMNIST and EMNIST."""

    module, base = "torchvision.datasets.mnist", "MNIST"
    channels = 1

    def check(self, leaf):
        """(n, height, width), a tensor."""
        if type(leaf.data) is not torch.Tensor or leaf.data.ndim != 3 or leaf.data.device.type != "cpu":
            raise NotNative(f"its data has the shape {tuple(leaf.data.shape)}")
        return super().check(leaf)

    def fetch(self, leaf, index):
        """A row, with its channel."""
        return leaf.data[index].numpy()[..., None], int(leaf.targets[index])


class Svhn(Pixels):
    """SVHN keeps its channels first: single samples are natively transformed, batches would need a copy of it all."""

    module, base = "torchvision.datasets.svhn", "SVHN"
    labels = "labels"
    why_not_whole = "its data is stored with channels first"

    def check(self, leaf):
        """(n, 3, height, width)."""
        if type(leaf.data) is not numpy.ndarray or leaf.data.ndim != 4 or leaf.data.shape[1] != 3:
            raise NotNative(f"its data has the shape {tuple(leaf.data.shape)}")
        return super().check(leaf)

    def fetch(self, leaf, index):
        """A row, channels last."""
        return numpy.ascontiguousarray(numpy.transpose(leaf.data[index], (1, 2, 0))), int(leaf.labels[index])


class Tensors(Family):
    """torch's TensorDataset: row i of each tensor."""

    module, base = "torch.utils.data.dataset", "TensorDataset"
    attributes = ("tensors",)

    def matches(self, leaf):
        """Plain tensors in memory, in the order of their axes."""
        if not super().matches(leaf):
            return False
        for tensor in leaf.tensors:
            if type(tensor) is not torch.Tensor or tensor.device.type != "cpu" or tensor.layout is not torch.strided:
                raise NotNative("holds something that is not a plain tensor in memory")
            if tensor.requires_grad or not tensor.is_contiguous() or tensor.is_neg() or tensor.is_conj():
                raise NotNative("holds a tensor that is a view or requires a gradient")
        return True

    def form(self, leaf):
        """There are no images."""
        return None

    def fields(self, leaf):
        """As many as there are tensors."""
        return tuple(f"tensor{i}" for i in range(len(leaf.tensors)))

    def keep(self, leaf):
        """Where the tensors are: their memory is shared."""
        return [place_of(tensor) for tensor in leaf.tensors]

    def still(self, leaf, kept):
        """At the same places."""
        return kept == self.keep(leaf)

    def open(self, leaf):
        """Over the same memory."""
        return from_arrays({name: tensor.numpy() for name, tensor in zip(self.fields(leaf), leaf.tensors)}).dataset


class TimmFiles(Files):
    """timm's ImageDataset over its reader of folders.  It goes on with the next sample where one cannot be read."""

    module, base = "timm.data.dataset", "ImageDataset"
    attributes = ("reader", "load_bytes", "input_img_mode", "additional_features", *Family.attributes)
    goes_on = True

    def matches(self, leaf):
        """Only images that are converted to RGB and come with nothing but their label."""
        if not Family.matches(self, leaf):
            return False
        kind = home("timm.data.readers.reader_image_folder", "ReaderImageFolder")
        if type(leaf.reader) is not kind or "__getitem__" in vars(leaf.reader):
            raise NotNative(f"its reader is a {type(leaf.reader).__name__}, and not one of folders")
        check_class(kind, (object,))
        own_attributes(leaf.reader, ("samples",))
        if leaf.load_bytes or leaf.input_img_mode != "RGB" or leaf.additional_features is not None:
            raise NotNative("gives something else than an image in RGB and its label")
        return self.check_files(leaf)

    def samples(self, leaf):
        """Those of its reader."""
        return leaf.reader.samples

    def root(self, leaf):
        """That of its reader."""
        return leaf.reader.root


class RemoteFiles(Family):
    """drapps's RemoteImageFolder."""

    module, base = "drapps.torch.remote_folder", "RemoteImageFolder"
    reads = ("__getitem__", "fetch")
    attributes = ("native", *Family.attributes)

    def matches(self, leaf):
        """As strict as Pillow is by default."""
        if not super().matches(leaf):
            return False
        check_pillow()
        return True

    def first_ops(self, leaf):
        """Files are decoded."""
        return (decode_op(),)

    def form(self, leaf):
        """It converts to RGB."""
        return Form(PIL)

    def keep(self, leaf):
        """The native data set, which does not change."""
        return leaf.native

    def still(self, leaf, kept):
        """Whether it is that one."""
        return leaf.native is kept

    def open(self, leaf):
        """It is open."""
        return leaf.native

    def fetch(self, leaf, index):
        """The bytes of the file."""
        return leaf.fetch(index)


@functools.cache
def families():
    """One of each."""
    from drapps.torch.lower_detection import Coco, Voc

    return (Files(), TimmFiles(), RemoteFiles(), Cifar(), Mnist(), Svhn(), Tensors(), Coco(), Voc())


def family_of(leaf):
    """The family of a data set; NotNative where there is none."""
    for family in families():
        if family.matches(leaf):
            return family
    if type(leaf).__module__.split(".")[0] in ("torch", "torchvision"):
        raise NotNative("drapps has no native form of it")
    raise NotNative("a data set that is not torch's or torchvision's")
