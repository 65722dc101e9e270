"""What a data set is and what its transforms do, in a few bytes, so that a state is not loaded into another one.

All of it is cheap to look at and the same in every process and run.  Files count by their names below their common
folder (a folder may move) and by the sizes of some of them, arrays by some of their elements, transforms by name and
parameters.  What may change while it is used (attributes of a user's class) does not count.
"""

import enum
import functools
import itertools
import os

import numpy
import torch
from torch.utils import data

from drapps.digest import digest
from drapps.torch.samplers import length_of

ARRAYS = (torch.Tensor, numpy.ndarray)
CHAINS = (list, tuple, torch.nn.Sequential, torch.nn.ModuleList)
COLUMNS = (list, tuple, range, *ARRAYS)
PATHS = (str, os.PathLike)
ELEMENTS, ENTRIES, SIZES = 1024, 64, 16  # looked at: of an array, of a list of other things, of files
STEP = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: its multiples are all over the place, and nowhere twice
HOLDS_TRANSFORMS = ("transform", "target_transform", "transforms")  # attributes of data sets
OF_TORCHVISION = ("data", "labels", "samples", "targets")  # what its classes mostly call what they have for each sample
LINE = 100  # characters of a transform


def data_of(dataset):
    """{what of the data set: its digest}; empty where nothing is known."""
    found = {}
    for part in _walk(dataset, enough=lambda one: _mark(one) is not None):
        for what, value in _facts(part):
            found.setdefault(what, []).append(digest(value))
    return {what: digest(values).hex()[:16] for what, values in found.items()}


def transforms_of(dataset):
    """A line for each transform; those of parts that are transformed alike come once."""
    parts = dict.fromkeys(tuple(_transform_lines(part)) for part in _walk(dataset))
    return list(itertools.chain.from_iterable(parts))


def fingerprint_of(dataset):
    """What the user says that a data set is; None: nothing."""
    mark = getattr(dataset, "fingerprint", None)
    return mark if isinstance(mark, (str, int)) else None


# --- data sets in data sets ---


def _held(thing):
    """Attributes of the object itself: properties may do anything."""
    return getattr(thing, "__dict__", {})


def _mark(dataset):
    """A name that says it all: the user's, or that of Hugging Face's data sets."""
    mark = _held(dataset).get("_fingerprint")
    return mark if isinstance(mark, str) else fingerprint_of(dataset)


def _walk(dataset, enough=lambda one: False, above=()):
    """A data set and those that it is made of, but for what is inside of one that is enough."""
    yield dataset
    if not enough(dataset):
        for part in _parts(dataset):
            if all(part is not one for one in (*above, dataset)):
                yield from _walk(part, enough, (*above, dataset))


def _parts(dataset):
    """As in Subset, ConcatDataset and StackDataset, and in most wrappers."""
    inner = _held(dataset).get("datasets", _held(dataset).get("dataset"))
    inner = list(inner.values()) if isinstance(inner, dict) else inner
    inner = inner if isinstance(inner, (list, tuple)) else [inner]
    return [part for part in inner if isinstance(part, data.Dataset) or "_fingerprint" in _held(part)]


# --- data ---


def _facts(dataset):
    """(what, value) of all that tells a data set from another one of its type and length, but for its parts."""
    if (mark := _mark(dataset)) is not None:
        yield "fingerprint", mark
    elif isinstance(dataset, COLUMNS):
        yield from _column("values", dataset)
    elif isinstance(dataset, data.TensorDataset):
        yield "values", sketch(dataset.tensors)
    elif isinstance(dataset, data.Subset):
        yield from _column("indices", numpy.asarray(getattr(dataset, "indices", ())).tolist())
    elif isinstance(dataset, data.ConcatDataset):
        yield "sizes of parts", list(dataset.cumulative_sizes)
    elif not isinstance(dataset, data.IterableDataset):
        yield from _columns(dataset)


def _columns(dataset):
    """Facts of attributes with one entry for each sample: all of torchvision's own classes, files of others.  What a
    subclass has besides may be filled while it is used, as a cache."""
    n, seen = length_of(dataset), set()
    own, *above = (kind.__module__.startswith("torchvision.") for kind in type(dataset).__mro__)
    for name, value in sorted(_held(dataset).items()):
        if isinstance(value, COLUMNS) and getattr(value, "ndim", 1) and len(value) == n and id(value) not in seen:
            if own or (any(above) and name in OF_TORCHVISION) or _are_files(value):
                seen.add(id(value))
                yield from _column(name, value)


def _are_files(values):
    """A list of paths, or of (path, label)."""
    first = values[0] if isinstance(values, (list, tuple)) and values else None
    first = first[0] if isinstance(first, tuple) and first else first
    return isinstance(first, PATHS) and os.path.isfile(first)


def _column(name, values):
    """Facts of what has one entry for each sample."""
    kinds = set(map(type, values)) if isinstance(values, (list, tuple)) else set()
    if kinds and all(issubclass(kind, PATHS) for kind in kinds):
        yield from _files(list(map(os.fspath, values)))
    elif kinds == {tuple} and all(entry and isinstance(entry[0], str) for entry in values):  # as torchvision's folders
        yield from _files([entry[0] for entry in values])
        yield from _column("labels", [entry[-1] for entry in values])
    else:
        yield name, list(values) if kinds and kinds <= {int, float, bool} else sketch(values)


def _files(paths):
    """All names, in one text, because a million of them should take a moment only."""
    folder = os.path.commonprefix([min(paths), max(paths)]).rpartition(os.sep)[0]
    yield "files", "\0".join(path[len(folder) :] for path in paths)
    yield "sizes of files", [_size(paths[i]) for i in _some(len(paths), SIZES)]


def _size(path):
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):  # it is gone, or no path
        return None


def sketch(value):
    """Of a value what is quick to look at, for digest()."""
    if isinstance(value, ARRAYS):
        return [str(value.dtype), list(value.shape), _elements(value)]
    if isinstance(value, (list, tuple, range)):
        return [len(value), [sketch(value[i]) for i in _some(len(value), ENTRIES)]]
    if isinstance(value, dict):
        return [[str(key), sketch(entry)] for key, entry in value.items()]
    plain = value is None or isinstance(value, (bool, int, float, complex, str, bytes, numpy.generic))
    return value if plain else type(value).__name__


def _elements(array):
    """Some elements of an array; None: they cannot be looked at."""
    if isinstance(array, torch.Tensor):
        n = array.numel()
        if not n or array.layout is not torch.strided or array.is_quantized or array.is_meta:
            return None
        array, index = array.detach().resolve_conj().resolve_neg(), torch.from_numpy
    else:
        n, index = array.size, numpy.asarray
        if not n or array.dtype.hasobject:
            return None
    array = array if array.ndim else array.reshape(1)
    found = array[tuple(index(axis) for axis in numpy.unravel_index(_some(n, ELEMENTS), tuple(array.shape)))]
    return found.cpu() if isinstance(found, torch.Tensor) else numpy.asarray(found)  # a memmap is an array, too


def _some(n, most):
    """At most `most` positions spread over n.  Not in even steps: these might all be corners of images."""
    if n <= most:
        return numpy.arange(n)
    turns = numpy.arange(most, dtype=numpy.uint64) * numpy.uint64(STEP)
    return numpy.unique(numpy.minimum((turns / 2.0**64 * n).astype(numpy.int64), n - 1))


# --- transforms ---


def _transform_lines(dataset):
    for name in HOLDS_TRANSFORMS:
        transform = _held(dataset).get(name)
        if type(transform).__name__ == "StandardTransform":  # torchvision's, of the other two
            continue
        said = "target_transform " if name == "target_transform" else ""
        yield from (_short(said + _text(member)) for member in _members(transform))


def _members(transform):
    """The transforms of a chain, however it is nested."""
    if transform is None:
        return []
    is_group = type(transform).__name__ == "Compose"  # torchvision's two, and many a user's
    inside = getattr(transform, "transforms", None) if is_group else transform
    if not isinstance(inside, CHAINS):
        return [transform]
    return [member for one in inside for member in _members(one)]


def _text(value):
    """A value in words that hold in another process, too: no addresses, no code."""
    if isinstance(value, enum.Enum):
        return value.name
    value = value.item() if isinstance(value, numpy.generic) else value
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype, torch.device)):
        return repr(value)
    if isinstance(value, CHAINS):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(key)}: {_text(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, ARRAYS):
        return f"{type(value).__name__} {digest(sketch(value)).hex()[:8]}"
    if isinstance(value, functools.partial):
        return _call(_text(value.func), dict(enumerate(value.args)) | value.keywords)
    return getattr(value, "__name__", None) or _object(value)


def _object(value):
    """torchvision's with their parameters; of others only the name, because they may change while they are used."""
    kind = type(value)
    if kind.__module__.split(".")[0] != "torchvision":
        return kind.__name__
    own = {name: entry for name, entry in vars(value).items() if not name.startswith("_") and name != "training"}
    if isinstance(value, torch.nn.Module):
        own |= dict(value.named_children()) | dict(value.named_buffers(recurse=False))
    return _call(kind.__name__, own)


def _call(name, arguments):
    return f"{name}({', '.join(f'{key}={_text(value)}' for key, value in arguments.items())})"


def _short(text):
    return text if len(text) <= LINE else f"{text[: LINE - 12]}... {digest(text).hex()[:8]}"
