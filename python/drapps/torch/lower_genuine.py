"""Is this torchvision's own code?  Nothing is run natively that a user has changed in any way drapps could not see.

A class is asked for exactly, an object must not replace anything of its class, a module must have no hooks, and the
functions of a class must come from the library's files.
"""

import os
import sys
import types

import torch

from drapps.torch.lower_rows import NotNative

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
