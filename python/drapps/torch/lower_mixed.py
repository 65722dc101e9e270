"""MixedDataset: native ops up to the first Python code, then Python, one sample at a time.

It stands for a data set in worker processes (see drapps/fleet).  Natively drawn choices are keyed by a number from
torch's generator, so they follow torch's seeds as the Python rest does.
"""

import io
import threading

import torch
from PIL import Image

from drapps import _core
from drapps.optable import TABLE, graph_json
from drapps.torch.lower_rows import IMAGE, MODES

SEEDS = 2**63 - 1


class MixedDataset(torch.utils.data.Dataset):
    """A data set of a family whose image goes through native ops and then through `rest`.

    Everything else that is asked of it, the data set answers, which is also its attribute `original`.
    """

    def __init__(self, original, family, ops, form, rest):
        self.original = original
        self.family = family
        self.ops = ops
        self.form = form
        self.rest = rest
        self.is_random = any("random" in TABLE[op.name]["flags"] for op in ops)
        self.runners = threading.local()

    def __getitem__(self, index):
        data, target = self.family.fetch(self.original, index)
        try:
            image = self.transform_natively(data)
        except (_core.Error, Image.UnidentifiedImageError):
            return self.original[index]  # what Python makes of it, or its exception
        for transform in self.rest:
            image = transform(image)
        if self.original.target_transform is not None:
            target = self.original.target_transform(target)
        return image, target

    def __len__(self):
        return len(self.original)

    def __getattr__(self, name):
        if name.startswith("__") or name == "original":  # while it is unpickled there is no original yet
            raise AttributeError(name)
        return getattr(self.original, name)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "runners"}

    def __setstate__(self, state):
        self.__dict__.update(state, runners=threading.local())

    def __repr__(self):
        return f"drapps {', '.join(op.name for op in self.ops)} in {self.original!r}"

    def transform_natively(self, data):
        """What Python code gets after the native ops."""
        seed = int(torch.randint(SEEDS, ())) if self.is_random else 0
        ((_, _, dtype, dims, pixels),) = self.runner(data).feed((data,), seed, 0, 0, 0)
        if self.form.is_pil:
            return self.to_pil(pixels, dims, data)
        return self.to_tensor(pixels, dims, dtype)

    def runner(self, data):
        """This thread's runner."""
        runner = getattr(self.runners, "runner", None)
        if runner is None:
            encoded = isinstance(data, bytes)
            field = ("image", "bytes", "uint8", (-1,)) if encoded else ("image", "image", "uint8", (-1, -1, data.shape[2]))
            nodes = [{**op.to_json(), "id": i + 1} for i, op in enumerate(self.ops)]
            graph = _core.graph_from_json(graph_json(nodes))
            runner = self.runners.runner = _core.open_field_runner((field,), graph, "image", False)
        return runner

    def to_pil(self, pixels, dims, data):
        """A PIL image; one from a file has what Pillow read beside the pixels, such as EXIF."""
        height, width, channels = dims
        image = Image.frombuffer(MODES[channels], (width, height), pixels, "raw", MODES[channels], 0, 1).copy()
        if isinstance(data, bytes):
            with Image.open(io.BytesIO(data)) as header:
                image.info = {key: value for key, value in header.info.items() if key != "transparency"}
        return image

    def to_tensor(self, pixels, dims, dtype):
        """A tensor with its channels first, laid out as torchvision's."""
        tensor = torch.frombuffer(pixels, dtype=getattr(torch, dtype)).view(dims).permute(2, 0, 1)
        tensor = tensor.contiguous() if self.form.dense else tensor
        if self.form.kind != IMAGE:
            return tensor
        from torchvision import tv_tensors

        return tv_tensors.Image(tensor)
