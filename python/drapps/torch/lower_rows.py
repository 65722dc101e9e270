"""The table of transforms that have a native form, and what its rows speak of.

A row is a function from a transform and the form of the image at that point to native ops and the form after them.  It
raises NotNative, with the reason in words, where the native result would not equal torchvision's.  One file a family:
lower_image_rows, lower_augment_rows, and lower_chain for groups.
"""

import sys
from typing import NamedTuple

import torch

from drapps import _core

TESTED = ("AVX2", "AVX512")  # what torch must have found for its arithmetic to be the one we know
PIL, TENSOR, IMAGE = "a PIL image", "a tensor", "a tv_tensors.Image"
MODES = {1: "L", 3: "RGB"}
LIBRARIES = ("torchvision.", "timm.")


class NotNative(Exception):
    """Why something is not run natively, in words for the user."""


class Form(NamedTuple):
    """What Python code would get at a point of a chain."""

    kind: str  # PIL, TENSOR or IMAGE
    dtype: str = "uint8"
    channels: int = 3
    dense: bool = False  # a tensor whose memory is in the order of its axes; else channels are innermost
    since: str = ""  # the transform that made a tensor of the PIL image
    targets: tuple = ()  # keys of the target that is transformed together with the image
    pure: bool = False  # boxes and masks are plain tensors, which no transform moves any more

    @property
    def is_pil(self):
        """Whether it is a PIL image."""
        return self.kind == PIL

    @property
    def is_float(self):
        """Whether its numbers are floating-point ones."""
        return self.dtype != "uint8"

    def __str__(self):
        return self.kind if self.is_pil else f"{self.kind} of {self.dtype}"


class Row(NamedTuple):
    """One class of transforms: how its ops are made, and whether a group takes part in the making."""

    name: str
    versions: tuple  # of the names in homes(): where a class of this name is meant
    make: object


ROWS: dict[str, Row] = {}


def row(name, versions=("v1", "v2")):
    """Makes a function a row of the table: for the class of that name in these versions of torchvision's transforms."""

    def add(function):
        ROWS[name] = Row(name, versions, function)
        return function

    return add


def homes():
    """{version: module} of the modules with transforms that the program has imported."""
    names = {"v1": "torchvision.transforms", "v2": "torchvision.transforms.v2", "nn": "torch.nn",
             "presets": "torchvision.transforms._presets", "timm": "timm.data.transforms",
             "timm erasing": "timm.data.random_erasing"}  # fmt: skip
    return {version: sys.modules[name] for version, name in names.items() if name in sys.modules}


def find_row(transform):
    """The row for exactly the class of a transform; NotNative says why there is none."""
    kind = type(transform)
    wanted = ROWS.get(kind.__name__)
    known = homes()
    if wanted and any(getattr(known[v], wanted.name, None) is kind for v in wanted.versions if v in known):
        return wanted
    for base in kind.__mro__[1:-1]:
        if base.__name__ in ROWS and base.__module__.startswith(LIBRARIES):
            raise NotNative(f"a subclass of {base.__module__.split('.')[0]}'s {base.__name__}")
    if kind.__module__.startswith(LIBRARIES):
        raise NotNative("has no native form")
    raise NotNative("code that is not torchvision's")


def is_v2(transform):
    """Whether a transform is one of torchvision.transforms.v2."""
    return type(transform).__module__.startswith("torchvision.transforms.v2")


# --- what rows ask for ---


def need_pil(form, why="on tensors torchvision computes otherwise"):
    """NotNative unless the image is a PIL image there; with the advice where it would be one."""
    if not form.is_pil:
        advice = f"; before {form.since} it runs natively" if form.since else ""
        raise NotNative(f"gets {form}: {why}{advice}")


def backend_of(transform, form):
    """The setting of ops that compute both as on PIL images and as v2 does on tensors of bytes."""
    if form.is_pil:
        return {}
    if form.is_float:
        need_pil(form, "native for bytes only")
    if not is_v2(transform):
        need_pil(form, "v1 computes otherwise on tensors; v2's runs natively")
    if torch.backends.cpu.get_cpu_capability() not in TESTED:
        need_pil(form, "without AVX2 torch computes otherwise")
    return {"backend": "tensor"}


def need_tensor(form):
    """NotNative unless the image is a tensor there."""
    if form.is_pil:
        raise NotNative("gets a PIL image, needs a tensor")


def plain(value, what):
    """A setting as numbers, texts and lists of them; NotNative for anything that could hide code or a gradient."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(entry, what) for entry in value]
    if getattr(value, "requires_grad", False):
        raise NotNative(f"{what} requires a gradient")
    if hasattr(value, "tolist"):
        return value.tolist()
    raise NotNative(f"{what} is {value!r}")


def settings(transform, *names):
    """{name: value} of a transform's attributes that an op takes under the same names."""
    return {name: plain(getattr(transform, name), name) for name in names}


def per_channel(values, form, what):
    """A list of numbers that is one for all channels or one for each."""
    values = plain(values, what)
    values = values if isinstance(values, list) else [values]
    if len(values) not in (1, form.channels):
        raise NotNative(f"{what} has {len(values)} values for {form.channels} channels")
    return values


def make(op, *arguments, **named):
    """A native op; NotNative in the library's words where it does not take a setting."""
    try:
        return op(*arguments, **named)
    except _core.Error as error:
        raise NotNative(str(error)) from None
