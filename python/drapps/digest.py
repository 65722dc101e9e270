"""A digest of Python values: equal for equal values, in every process and run.

Used to name the arguments of a function call.  A value that cannot be distinguished from another value of its type (an
open file, a lock) raises an error.
"""

import enum
import functools
import hashlib
import json
import os
import struct
import sys
import types


class Unnamed(TypeError):
    """The value has no digest; the text says which value and where it is."""


def digest(value):
    """Return the digest of a value: 16 bytes."""
    h = hashlib.blake2b(digest_size=16)
    _add(h, value, "value", [])
    return h.digest()


def code_digest(function):
    """Return the digest of a function's code (instructions, constants, defaults, closure): 16 bytes."""
    h = hashlib.blake2b(digest_size=16)
    _add_function(h, function, "function", [])
    return h.digest()


def _put(h, letter, data=b""):
    """Hash data with its kind and length, so that different values never give the same bytes."""
    h.update(struct.pack("<cQ", letter, len(data)))
    h.update(data)


def _add(h, value, where, above):
    kind = type(value)
    if value is None or kind in (bool, int, float, complex):
        _put(h, b"=", f"{kind.__name__}:{value!r}".encode())
    elif kind is str:
        _put(h, b"s", value.encode("utf-8", "surrogatepass"))
    elif kind in (bytes, bytearray, memoryview):
        _put(h, b"b", bytes(value))
    elif isinstance(value, os.PathLike):
        _put(h, b"p", os.fsencode(value))
    elif isinstance(value, type | types.ModuleType):
        _put(h, b"n", f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}".encode())
    elif any(value is other for other in above):
        _put(h, b"^")  # contains itself
    else:
        _add_composed(h, value, kind, where, [*above, value])


def _add_composed(h, value, kind, where, above):
    if kind in (list, tuple):
        _add_sequence(h, value, where, above)
    elif kind in (set, frozenset):
        _put(h, b"S", b"".join(sorted(digest(v) for v in value)))
    elif kind is dict:
        _add_dict(h, value, where, above)
    elif isinstance(value, enum.Enum):
        _put(h, b"e", f"{kind.__module__}.{kind.__qualname__}.{value.name}".encode())
    elif isinstance(value, functools.partial):
        _put(h, b"P")
        _add(h, [value.func, list(value.args), value.keywords], where, above)
    elif isinstance(value, types.FunctionType):
        _add_function(h, value, where, above)
    elif isinstance(value, types.MethodType):
        _add_function(h, value.__func__, where, above)
        _add(h, value.__self__, where, above)
    elif isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType | None):
        _put(h, b"n", f"{value.__module__}.{value.__qualname__}".encode())
    elif not _add_array(h, value):
        _add_object(h, value, kind, where, above)


def _add_sequence(h, value, where, above):
    """Hash a sequence; long lists of texts and numbers as JSON, which is exact here and much faster."""
    _put(h, b"l" if type(value) is list else b"t", struct.pack("<Q", len(value)))
    if len(value) > 64 and _is_flat(value):
        _put(h, b"j", json.dumps(value).encode())
        return
    for i, item in enumerate(value):
        _add(h, item, f"{where}[{i}]", above)


def _is_flat(value):
    plain = (str, int, float, bool)
    return all(type(v) in plain or (type(v) is tuple and all(type(w) in plain for w in v)) for v in value)


def _add_dict(h, value, where, above):
    _put(h, b"d", struct.pack("<Q", len(value)))
    for key, item in value.items():
        _add(h, key, where, above)
        _add(h, item, f"{where}[{key!r}]", above)


def _add_array(h, value):
    """Hash a NumPy array or scalar, or a tensor on the CPU; return False for other values."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if torch and isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.layout is torch.strided:
        flat = value.detach().contiguous().reshape(-1)
        _put(h, b"T", f"{type(value).__qualname__} {value.dtype} {list(value.shape)}".encode())
        h.update(flat.view(torch.uint8).numpy() if flat.numel() else b"")
        return True
    if numpy and isinstance(value, numpy.ndarray | numpy.generic) and not value.dtype.hasobject:
        array = numpy.ascontiguousarray(value)
        _put(h, b"a", f"{type(value).__qualname__} {value.dtype!r} {numpy.shape(value)}".encode())
        h.update(array.reshape(-1).view(numpy.uint8) if array.size else b"")
        return True
    return False


def _add_object(h, value, kind, where, above):
    """Hash the type and the attributes of an object."""
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    state = {name: getattr(value, name) for name in slots if name not in ("__dict__", "__weakref__") and
             hasattr(value, name)}  # fmt: skip
    if not hasattr(value, "__dict__") and not slots:
        raise Unnamed(f"{where} is a {kind.__module__}.{kind.__qualname__}, which has no attributes that identify it")
    _put(h, b"o", f"{kind.__module__}.{kind.__qualname__}".encode())
    for name, item in sorted({**state, **getattr(value, "__dict__", {})}.items()):
        _put(h, b"m", name.encode())
        _add(h, item, f"{where}.{name}", above)
    if isinstance(value, list | tuple | dict | str | int | float | bytes | set):
        base = next(b for b in (list, tuple, dict, str, int, float, bytes, set) if isinstance(value, b))
        _add(h, base(value), where, above)


# --- functions ---


def _add_function(h, function, where, above):
    _put(h, b"F", f"{function.__module__}.{function.__qualname__}".encode())
    _add_code(h, function.__code__)
    _add(h, [list(function.__defaults__ or ()), function.__kwdefaults__ or {}], where, above)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            content = cell.cell_contents
        except ValueError:  # not filled yet
            content = None
        _add(h, content, f"{where}.{name}", above)


def _add_code(h, code):
    _put(h, b"c", code.co_code)
    _put(h, b"N", "\0".join(code.co_names + code.co_varnames).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(h, constant)
        else:
            _put(h, b"k", repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant).encode())
