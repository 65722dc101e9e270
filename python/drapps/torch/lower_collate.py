"""What a collate_fn does beyond default_collate: where that is known, the engine makes whole batches.

    default_collate                    the batch as it is
    f(*default_collate(samples))       f is called on the native batch, by the thread that takes it, with the random
                                       numbers that it would draw in a worker process of drapps
    timm's fast_collate                the batch as a tuple
    timm's FastCollateMixup            it is called on the samples of the native batch, as f is
    tuple(zip(*samples))               of detection data sets: images and targets, see lower_detection

f is torchvision's MixUp or CutMix, a choice of such ones, or a module of a user's that reaches nothing but torch and
numbers of its own: in which process it runs makes no difference then.
"""

import inspect
import math
import sys
import types
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.utils.data import default_collate

from drapps.torch.lower_exact_code import closure_template, is_confined, template, value_of
from drapps.torch.lower_datasets import home
from drapps.torch.lower_exact_code import check_class, check_module, check_object, check_transform, is_of_library
from drapps.torch.lower_rows import NotNative, settings
from drapps.torch.lower_exact_code import first_match

# MIX is called on what COLLATE makes of the samples.
BODIES = (
    "batch: return MIX(*COLLATE(batch))",
    "batch:\n  batch = COLLATE(batch)\n  return MIX(*batch)",
    "batch:\n  made = COLLATE(batch)\n  return MIX(*made)",
    "batch:\n  x, y = COLLATE(batch)\n  return MIX(x, y)",
    "batch:\n  x, y = COLLATE(batch)\n  x, y = MIX(x, y)\n  return x, y",
    "batch:\n  x, y = MIX(*COLLATE(batch))\n  return x, y",
)
LONG = ("TORCH.utils.data.default_collate", "TORCH.utils.data.dataloader.default_collate")
CELLS = ((), ("MIX",), ("COLLATE",), ("COLLATE", "MIX"))
MIXES = tuple(
    closure_template(cells, body.replace("COLLATE", collate)) if cells else template(body.replace("COLLATE", collate))
    for collate in ("COLLATE", *LONG) for body in BODIES for cells in CELLS
    if "COLLATE" not in cells or collate == "COLLATE"
)  # fmt: skip
ZIPS = tuple(map(template, (
    "batch: return TUPLE(ZIP(*batch))",
    "batch:\n  x, y = ZIP(*batch)\n  return x, y",
    "batch:\n  x, y = TUPLE(ZIP(*batch))\n  return x, y",
)))  # fmt: skip
CHOICES = (("torchvision.transforms.v2", "RandomChoice"), ("torchvision.transforms", "RandomChoice"))
MIXING = (("torchvision.transforms.v2", "MixUp"), ("torchvision.transforms.v2", "CutMix"))

# What a user's module may use beside numbers of its own and functions of torch that compute or draw.
VALUES = (int, float, bool, len, min, max, abs, round, range, isinstance, ValueError, TypeError, RuntimeError,
          torch.Tensor, torch, torch.nn, torch.nn.functional, math)  # fmt: skip
MODULES = {"nn", "functional", "linalg", "special"}  # of torch
NOT_COMPUTING = {
    "save", "load", "from_file", "compile", "seed", "initial_seed", "manual_seed", "get_rng_state", "default_generator",
    "share_memory_", "register_hook", "backward", "requires_grad_", "fork", "wait", "vmap",
}  # fmt: skip
PRIVATE = {"_sample_dirichlet", "_standard_gamma"}


class Collate:
    """What becomes of a native batch.

    finish: a function of its fields; None: they are a list, as default_collate makes it.
    draws: finish may draw random numbers.
    line: says so in words, "" where there is nothing to say.
    check: raises NotNative where the form of the images does not suit it.
    """

    def __init__(self, finish=None, draws=False, line="", check=None, key=None):
        self.finish, self.draws, self.line, self.key = finish, draws, line, key
        self.check = check or _check_one_image


def _check_one_image(form):
    """default_collate stacks images, and has no use for boxes."""
    if form is not None and form.targets:
        raise NotNative("images and boxes of unequal size cannot be stacked; "
                        "collate_fn=lambda batch: tuple(zip(*batch)) is native")  # fmt: skip


DEFAULT = Collate(check=_check_one_image)


def _check_targets(form):
    if form is None or not form.targets:
        raise NotNative("a collate_fn that zips is native for detection only")


ZIP = Collate(line="collate_fn: native", check=_check_targets, key="zip")


def lower_collate(function):
    """What a collate_fn does with a native batch; None: it has to see the samples."""
    if function is default_collate:
        return DEFAULT
    if function is home("timm.data.loader", "fast_collate") and _is_timms(function):
        return Collate(tuple, line="fast_collate: native", check=_check_bytes, key="fast_collate")
    if _is_timms_mixup(function):
        return Collate(lambda fields: function(_samples(*fields)), True, _line(function), _check_bytes, id(function))
    if _is_zip(function):
        return ZIP
    mix = _mix_of(function)
    if mix is None or not _is_known(mix):
        return None
    return Collate(lambda fields: mix(*fields), True, _line(mix), key=id(mix))


def _line(mix):
    return f"{type(mix).__name__}: Python, on each batch that the engine has made, in the thread that takes it"


def _is_timms(function):
    return is_of_library(function, sys.modules["timm.data.loader"])


def _is_timms_mixup(function):
    """Whether it is timm's, which draws from numpy.random and keeps nothing."""
    if type(function) is not home("timm.data.mixup", "FastCollateMixup"):
        return False
    try:
        check_object(function)
        check_class(type(function), (object,))
        settings(function, *vars(function))
    except NotNative:
        return False
    return True


def _samples(images, labels):
    """A native batch as a collate_fn gets it."""
    return list(zip(images, labels.tolist()))


def _check_bytes(form):
    """timm's functions take bytes, and numbers as labels."""
    _check_one_image(form)
    if form is None or form.is_pil or form.is_float:
        raise NotNative(f"collate_fn gets {form}, needs a tensor of uint8")


def _is_zip(function):
    """Whether a function makes a tuple of images and one of targets."""
    found = first_match(function, ZIPS)
    wanted = {"TUPLE": tuple, "ZIP": zip}
    try:
        return found is not None and all(value_of(function, name) is wanted[what] for what, name in found.items())
    except LookupError:
        return False


def _mix_of(function):
    """What a function calls on a default batch; None: that is not what it does."""
    found = first_match(function, MIXES)
    if found is None:
        return None
    try:
        values = {wanted: value_of(function, name) for wanted, name in found.items()}
    except LookupError:
        return None
    is_default = values.get("COLLATE", default_collate) is default_collate and values.get("TORCH", torch) is torch
    return values["MIX"] if is_default and torch.utils.data.default_collate is default_collate else None


def _is_known(mix):
    """Whether it is torchvision's, or only computes."""
    kind = type(mix)
    try:
        if not any(home(*place) is kind for place in (*MIXING, *CHOICES)):
            return _is_computing(mix)
        check_transform(mix)
    except NotNative:
        return False
    if any(home(*place) is kind for place in CHOICES):
        return type(mix.transforms) in (list, tuple) and all(map(_is_known, mix.transforms))
    return mix._labels_getter is home("torchvision.transforms.v2._utils", "_find_labels_default_heuristic")


def _is_computing(module):
    """Whether a user's module only computes: with torch, and numbers that are its attributes."""
    kind = type(module)
    if not isinstance(module, nn.Module) or kind.__call__ is not nn.Module.__call__:
        return False
    if kind.__getattr__ is not nn.Module.__getattr__ or kind.__getattribute__ is not object.__getattribute__:
        return False
    check_object(module)
    check_module(module)
    if any(module._modules or ()) or any(module._parameters or ()) or any(module._buffers or ()):
        return False
    mine = vars(module)

    def may_ask(name):
        if name in mine:
            return mine[name] is None or type(mine[name]) in (bool, int, float, str)
        own = getattr(kind, name, None) is not getattr(nn.Module, name, None)
        return _computes(name) and not own and (hasattr(torch.Tensor, name) or not hasattr(kind, name))

    return is_confined(inspect.getattr_static(kind, "forward", None), _may_reach, may_ask)


def _may_reach(value):
    functional = [sys.modules.get(f"torchvision.transforms.{version}functional") for version in ("", "v2.")]
    return any(value is other for other in (*VALUES, *filter(None, functional)))


def _computes(name):
    """Whether an attribute of that name, of torch or of a tensor, is nothing that acts on the program."""
    if isinstance(getattr(torch, name, None), types.ModuleType):
        return name in MODULES
    return name not in NOT_COMPUTING and not name.startswith("set_") and (name[0] != "_" or name in PRIVATE)


# --- running it ---


@contextmanager
def as_in_a_worker():
    """Run code with the torch settings of a worker, whatever the main process has switched on."""
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast("cpu", enabled=False))
        stack.enter_context(torch.device("cpu"))
        yield
