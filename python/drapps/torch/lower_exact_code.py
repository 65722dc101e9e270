"""Proves what classes, objects and functions do, so that no user code is skipped by mistake.

    library code   the class must match exactly, its functions must come from the library's files, the object must not
                   override anything of its class, and a module must have no hooks
    functions      bindings(function, template): the bytecode does exactly what a template does, whose upper-case names
                   may stand for anything; is_confined(function, ...): it reaches only some modules and has no side
                   effects
    wrappers       user classes that only forward to what they hold: a transform whose __call__ or forward is
                   `return self.transforms(x)` or calls those of a list in turn; a data set whose __getitem__ is
                   `return self.dataset[index]`, or that with a transform of the image

Anything that is not proven is treated as user code.  A template is compiled by the running Python, so that nothing here
depends on the bytecode of a version.  Neither source files (they may have changed) nor names of functions are used.
"""

import dis
import inspect
import os
import sys
import types
from typing import NamedTuple

import torch
from torch import nn

from drapps.torch.lower_rows import NotNative

# --- is it the library's own code? ---

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")


def check_transform(transform):
    """NotNative unless a transform does what its class does in torchvision."""
    check_object(transform)
    check_class(type(transform), (torch.nn.Module, object))
    if isinstance(transform, torch.nn.Module):
        check_module(transform)


def check_module(module):
    """NotNative when calling a module is more than calling its forward."""
    if any(getattr(module, name, None) for name in HOOKS) or any(getattr(torch.nn.modules.module, name, None)
                                                                for name in GLOBAL_HOOKS):  # fmt: skip
        raise NotNative("has hooks")
    if not module.training:
        raise NotNative("was switched to eval()")
    if any(parameter.requires_grad for parameter in module.parameters(recurse=False)):
        raise NotNative("has parameters that require a gradient")


def check_object(thing):
    """NotNative when an object replaces something of its class."""
    replaced = [name for name in vars(thing) if hasattr(type(thing), name)]
    if replaced:
        raise NotNative(f"its {replaced[0]} was replaced")


def check_class(kind, until):
    """NotNative when a function of a class, or of its bases before `until`, is not from the library's files."""
    for base in kind.__mro__:
        if base in until:
            return
        module = sys.modules[base.__module__]
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            if isinstance(function, types.FunctionType) and not is_of_library(function, module):
                raise NotNative(f"{base.__name__}.{name} was replaced")


def is_of_library(function, module):
    """Whether a function is from the files of the package that a module belongs to."""
    package = sys.modules[module.__name__.split(".")[0]]
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.startswith(os.path.dirname(package.__file__ or "?") + os.sep)


def inherits(kind, base, names):
    """Whether a class has these functions from `base`, unchanged, and no others that reading an item would use."""
    if kind.__getattribute__ is not object.__getattribute__ or hasattr(kind, "__getattr__"):
        return False
    return all(getattr(kind, name, None) is getattr(base, name, None) for name in (*names, "__getitems__"))


def own_attributes(thing, names):
    """NotNative unless these are plain attributes of the object itself, not properties of its class."""
    for name in names:
        if name not in vars(thing) or hasattr(type(thing), name):
            raise NotNative(f"its {name} is not a plain attribute")


# --- what a function's bytecode proves ---


# What a code object may do beside its instructions: take any number of arguments, be a generator or a coroutine.
SHAPE = (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
         | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR)  # fmt: skip
NAMED = {"LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL"}
CELLS = {"LOAD_DEREF"}


def template(text):
    """A function of its parameters, a colon and its body, in as many lines as it takes."""
    head, _, body = text.partition(":")
    scope = {}
    exec(f"def made({head}):{body}", scope)
    return scope["made"]


def closure_template(cells, text):
    """The same with some of its names in an enclosing function."""
    head, _, body = text.partition(":")
    scope = {}
    exec(f"def outer({', '.join(cells)}):\n def made({head}):{body}\n return made\n", scope)
    return scope["outer"](*[None] * len(cells))


def bindings(function, wanted):
    """{name in the template: name in the function} where the function does what the template does; else None."""
    if type(function) is not types.FunctionType:
        return None
    mine, theirs = function.__code__, wanted.__code__
    if _shape(mine) != _shape(theirs):
        return None
    found = {}
    for ours, other in zip(_steps(mine), _steps(theirs), strict=False):
        if ours[:2] != other[:2] or not _bind(found, other[2], ours[2]):
            return None
    return found if len(_steps(mine)) == len(_steps(theirs)) else None


def _shape(code):
    return (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & SHAPE, code.co_nlocals,
            code.co_cellvars, len(code.co_freevars), code.co_exceptiontable)  # fmt: skip


def _steps(code):
    """(what is done, on what, with which name) of each instruction."""
    return [_step(one) for one in dis.get_instructions(code) if one.opname != "NOP"]


def _step(one):
    if one.opname in NAMED:
        return one.opname, one.argrepr.replace(one.argval, "", 1), one.argval
    if one.opname in CELLS:
        return one.opname, None, one.argval
    if one.opname in ("LOAD_CONST", "RETURN_CONST"):
        return one.opname, (type(one.argval), repr(one.argval)), None
    return one.opname, one.arg, None


def _bind(found, wanted, name):
    """Whether a name stands where the template has `wanted`; one in capitals may be any, but the same everywhere."""
    if wanted is None or not wanted.isupper():
        return wanted == name
    return found.setdefault(wanted, name) == name


def value_of(function, name):
    """What a name that is no local one means in a function now; LookupError: nothing."""
    code = function.__code__
    if name in code.co_freevars:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            raise LookupError(name) from None
    if name in function.__globals__:
        return function.__globals__[name]
    return function.__builtins__[name]  # which its globals may have replaced


# --- what a function can reach ---

def is_confined(function, reaches, attributes):
    """Whether all that a function can reach is permitted, and it sets no attribute or name but its local ones.

    reaches: of a value that a global name or a name of an enclosing function stands for: is it permitted?
    attributes: of the name of an attribute: may it be asked for, of whatever object?
    """
    if type(function) is not types.FunctionType:
        return False
    code = function.__code__
    if code.co_flags & SHAPE or any(isinstance(const, types.CodeType) for const in code.co_consts):
        return False
    return all(_is_permitted(one, function, reaches, attributes) for one in dis.get_instructions(code))


def _is_permitted(one, function, reaches, attributes):
    if one.opname == "LOAD_GLOBAL" or one.opname in CELLS:
        try:
            return reaches(value_of(function, one.argval))
        except LookupError:
            return False
    if one.opcode in dis.hasname:  # all others set, delete or import something, or are not known
        return one.opname in NAMED and attributes(one.argval)
    return one.opcode not in dis.hasfree


# --- wrappers: objects that hand on to another one ---


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
