"""Plain wrappers of a user's: classes that do nothing but hand on to what they hold, as their bytecode proves.

    transforms   __call__ or forward is `return self.transforms(x)`, or calls those of a list one after the other
    data sets    __getitem__ is `return self.dataset[index]`, or that with a transform of the image
"""

import inspect
from typing import NamedTuple

import torch
from torch import nn

from drapps.torch.lower_code import bindings, template
from drapps.torch.lower_genuine import check_module, check_object
from drapps.torch.lower_rows import NotNative

# In each, HELD is the attribute that is looked at instead.
HANDS_ON = tuple(map(template, (
    "self, x: return self.HELD(x)",
    "self, x:\n  x = self.HELD(x)\n  return x",
    "self, x:\n  y = self.HELD(x)\n  return y",
)))  # fmt: skip
IN_TURN = tuple(map(template, (
    "self, x:\n  for t in self.HELD:\n    x = t(x)\n  return x",
)))  # fmt: skip
# The same where image and target are handed on together.
HANDS_ON_BOTH = tuple(map(template, (
    "self, x, y: return self.HELD(x, y)",
    "self, x, y:\n  x, y = self.HELD(x, y)\n  return x, y",
)))  # fmt: skip
BOTH_IN_TURN = tuple(map(template, (
    "self, x, y:\n  for t in self.HELD:\n    x, y = t(x, y)\n  return x, y",
)))  # fmt: skip
ITEMS = tuple(map(template, (
    "self, i: return self.HELD[i]",
    "self, i:\n  item = self.HELD[i]\n  return item",
    "self, i:\n  x, y = self.HELD[i]\n  return x, y",
)))  # fmt: skip
TRANSFORMED = tuple(map(template, (
    "self, i:\n  x, y = self.HELD[i]\n  return self.TRANSFORM(x), y",
    "self, i:\n  x, y = self.HELD[i]\n  x = self.TRANSFORM(x)\n  return x, y",
)))  # fmt: skip
IF_ANY = tuple(map(template, (
    "self, i:\n  x, y = self.HELD[i]\n  if self.TRANSFORM:\n    x = self.TRANSFORM(x)\n  return x, y",
    "self, i:\n  x, y = self.HELD[i]\n  if self.TRANSFORM is not None:\n    x = self.TRANSFORM(x)\n  return x, y",
)))  # fmt: skip
SEQUENCES = (list, tuple, nn.ModuleList)


def first_match(function, templates):
    """The bindings of the first template that a function is; None: it is none of them."""
    return next((found for one in templates if (found := bindings(function, one)) is not None), None)


# --- transforms ---


def held_transforms(transform, joint=False):
    """The transforms that stand for a wrapper, in turn; None: it is none.  joint: it gets image and target."""
    function = _called(transform)
    found = first_match(function, HANDS_ON_BOTH if joint else HANDS_ON)
    if found is not None and _is_plain(transform, found["HELD"]):
        return [_held(transform, found["HELD"])]
    found = first_match(function, BOTH_IN_TURN if joint else IN_TURN)
    if found is not None and _is_plain(transform, found["HELD"]):
        held = _held(transform, found["HELD"])
        return list(held) if type(held) in SEQUENCES else None
    return None


def _called(transform):
    """What calling an object comes to: a function that gets the object itself first; None: not known."""
    kind = type(transform)
    call = inspect.getattr_static(kind, "__call__", None)
    if not isinstance(transform, nn.Module):
        return call
    if call is not nn.Module.__call__ or getattr(transform, "_compiled_call_impl", None) is not None:
        return None
    return inspect.getattr_static(kind, "forward", None)


def _is_plain(thing, *names):
    """Whether attributes of an object are what they seem, and calling it is what its class says."""
    kind = type(thing)
    getattr_is_torchs = isinstance(thing, nn.Module) and kind.__getattr__ is nn.Module.__getattr__
    if kind.__getattribute__ is not object.__getattribute__ or (hasattr(kind, "__getattr__") and not getattr_is_torchs):
        return False
    if not hasattr(thing, "__dict__"):
        return False
    try:
        check_object(thing)
        if isinstance(thing, nn.Module):
            check_module(thing)
    except NotNative:
        return False
    inside = [vars(thing), vars(thing).get("_modules", {})] if isinstance(thing, nn.Module) else [vars(thing)]
    return all(not hasattr(kind, name) and any(name in part for part in inside) for name in names)


def _held(thing, name):
    return vars(thing)[name] if name in vars(thing) else thing._modules[name]


# --- data sets ---


class Holds(NamedTuple):
    """What a data set that is a wrapper hands on."""

    name: str  # of the attribute with the data set that it takes its items from
    transforms: tuple = ()  # that it calls on the image of an item


def held_dataset(dataset):
    """What a data set holds; None: it is no wrapper."""
    kind = type(dataset)
    if isinstance(dataset, torch.utils.data.IterableDataset) or hasattr(dataset, "__getitems__"):
        return None
    if kind.__new__ is not object.__new__:
        return None  # with_held could not make another
    function = inspect.getattr_static(kind, "__getitem__", None)
    found = first_match(function, ITEMS)
    if found is not None and _is_plain(dataset, found["HELD"]):
        return Holds(found["HELD"])
    found, is_asked = first_match(function, TRANSFORMED), False
    if found is None:
        found, is_asked = first_match(function, IF_ANY), True
    if found is None or not _is_plain(dataset, *found.values()):
        return None
    transform = _held(dataset, found["TRANSFORM"])
    if is_asked and transform is None:
        return Holds(found["HELD"])
    if is_asked and any(hasattr(type(transform), name) for name in ("__bool__", "__len__")):
        return None  # `if self.transform:` would ask it
    return Holds(found["HELD"], (transform,))


def with_held(dataset, name, held):
    """A wrapper like this one that holds something else."""
    made = object.__new__(type(dataset))
    vars(made).update(vars(dataset))
    vars(made)[name] = held
    return made
