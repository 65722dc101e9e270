"""MixedDataset: native ops up to the first Python code, then Python, one sample at a time.

It stands for a data set in worker processes (see drapps/procpool).  Natively drawn choices are keyed by a number from
torch's generator, so they follow torch's seeds as the Python rest does.
"""

import io
import threading

import torch
from PIL import Image

from drapps import _core
from drapps.optable import TABLE, graph_json
from drapps.torch.lower_rows import IMAGE, MODES, NotNative
from drapps.torch.lower_tree import read_tree

SEEDS = 2**63 - 1
CHANGED = object()  # no transform


class MixedDataset(torch.utils.data.Dataset):
    """A data set of a family whose image goes through native ops and then through `rest`.

    Everything else that is asked of it or set goes to the data set, which is also its attribute `original`.  A
    transform that was replaced or changed in the meantime, for example by a worker_init_fn, is honoured: in Python.
    """

    OWN = ("original", "family", "ops", "form", "rest", "is_random", "runners", "lowered")

    def __init__(self, original, family, ops, form, rest):
        self.original = original
        self.family = family
        self.ops = ops
        self.form = form
        self.rest = rest
        self.is_random = any("random" in TABLE[op.name]["flags"] for op in ops)
        self.runners = threading.local()
        self.lowered = getattr(original, "transform", None)

    def __getitem__(self, index):
        if self.original.transform is not self.lowered:
            return self.original[index]
        data, target = self.family.fetch(self.original, index)
        try:
            image = self.transform_natively(data)
        except (_core.Error, NotNative, Image.UnidentifiedImageError):
            return self.original[index]  # what Python makes of it, or its exception
        for transform in self.rest:
            image = transform(image)
        if self.original.target_transform is not None:
            target = self.original.target_transform(target)
        return image, target

    def look_again(self):
        """The transform may have been changed in itself: what is not as it was lowered runs in Python from now on."""
        now = read_tree(self.original)
        same = (now.ops, now.chain.form) == (self.ops, self.form) and len(now.chain.rest) == len(self.rest)
        if not same or any(a is not b for a, b in zip(now.chain.rest, self.rest)):
            self.lowered = CHANGED

    def __len__(self):
        return len(self.original)

    def __getattr__(self, name):
        if name.startswith("__") or name == "original":  # while it is unpickled there is no original yet
            raise AttributeError(name)
        return getattr(self.original, name)

    def __setattr__(self, name, value):
        if name in self.OWN:
            super().__setattr__(name, value)
        else:
            setattr(self.original, name, value)

    def __delattr__(self, name):
        delattr(self.original, name)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "runners"}

    def __setstate__(self, state):
        self.__dict__.update(state, runners=threading.local())

    def __repr__(self):
        return f"drapps {', '.join(op.name for op in self.ops)} in {self.original!r}"

    def transform_natively(self, data):
        """What Python code gets after the native ops."""
        info = read_info(data) if self.form.is_pil and isinstance(data, bytes) else {}
        seed = int(torch.randint(SEEDS, ())) if self.is_random else 0
        ((_, _, dtype, dims, pixels),) = self.runner(data).feed((data,), seed, 0, 0, 0)
        if self.form.is_pil:
            return self.to_pil(pixels, dims, info)
        return self.to_tensor(pixels, dims, dtype)

    def runner(self, data):
        """This thread's runner."""
        runner = getattr(self.runners, "runner", None)
        if runner is None:
            form = ("bytes", "uint8", (-1,)) if isinstance(data, bytes) else ("image", "uint8", (-1, -1, data.shape[2]))
            nodes = [{**op.to_json(), "id": i + 1} for i, op in enumerate(self.ops)]
            graph = _core.graph_from_json(graph_json(nodes))
            runner = self.runners.runner = _core.open_field_runner((("image", *form),), graph, "image", False)
        return runner

    def to_pil(self, pixels, dims, info):
        """A PIL image with what Pillow knows beside the pixels."""
        height, width, channels = dims
        image = Image.frombuffer(MODES[channels], (width, height), pixels, "raw", MODES[channels], 0, 1).copy()
        image.info = info
        return image

    def to_tensor(self, pixels, dims, dtype):
        """A tensor with its channels first, laid out as torchvision's."""
        tensor = torch.frombuffer(pixels, dtype=getattr(torch, dtype)).view(dims).permute(2, 0, 1)
        tensor = tensor.contiguous() if self.form.dense else tensor
        if self.form.kind != IMAGE:
            return tensor
        from torchvision import tv_tensors

        return tv_tensors.Image(tensor)


# --- what Pillow knows of a file beside its pixels ---


def read_info(data):
    """Image.info as it is once Pillow has loaded the file and converted it to RGB, from the header alone.

    NotNative where loading would change it: Pillow then has to do it all.
    """
    with Image.open(io.BytesIO(data)) as image:
        is_whole = image.format in ("JPEG", "MPO", "BMP", "PPM") or (image.format == "PNG" and _ends_with_pixels(data))
        if not is_whole or "transparency" in image.info:
            raise NotNative(f"{image.format}: loading it changes its info")
        return dict(image.info)


def _ends_with_pixels(data):
    """Whether nothing but the end mark comes after the pixels of a PNG file; texts and EXIF may stand there."""
    start = data.rfind(b"IDAT")
    end = start + 8 + int.from_bytes(data[max(start - 4, 0) : max(start, 0)], "big")
    return data[end + 4 : end + 8] == b"IEND"
