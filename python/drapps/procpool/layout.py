"""Layout: where each number and array of a sample lies in a batch's slab, so that no batch has to be collated.

A layout is learnt from one sample.  Workers write each sample into its row; the batch is then a tree of tensors over
the slab, equal to what torch's default_collate gives for the same samples.  A sample that differs in a type, a dtype, a
shape or a key does not fit, and its batch is left to default_collate itself.

Strings and bytes, which default_collate only lists, are no part of the slab: they go beside it.

A slab has one part for each leaf, 64-byte aligned, with one row for each sample.

All processes of a pool know the same layouts by number: a LayoutRegistry is a file in memory to which workers append.
The size of a slab tells which layout it has: whole pages, and 64 bytes more for each number.
"""

import fcntl
import marshal
import os
import pickle
import struct
import sys
from collections import namedtuple

import numpy
import torch
from torch.utils.data._utils import collate as torch_collate

from drapps import _core
from drapps.procpool.pack import aligned

NUMBERS = {int: ("int", torch.int64), float: ("float", torch.float64), bool: ("bool", torch.bool)}
NUMPY_TYPES = {numpy.dtype(name): torch.from_numpy(numpy.empty(0, name)).dtype for name in (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")}  # fmt: skip
TORCH_TYPES = {dtype: source for source, dtype in NUMPY_TYPES.items()}
COLLATE_FUNCTIONS = dict(torch_collate.default_collate_fn_map)  # a caller may add to torch's map later

# What py_rows.c asks of a tensor or an array, in its order.
NAMES = tuple(map(sys.intern, ("dtype", "shape", "is_cpu", "requires_grad", "is_contiguous", "is_neg", "data_ptr",
                               "resolve_neg", "contiguous")))  # fmt: skip

# kind: tensor, array, scalar, int, float, bool, other.  type: of the sample's leaf.  dtype: of the batch; source: what
# NumPy calls it.
Leaf = namedtuple("Leaf", "kind type dtype shape source")
Branch = namedtuple("Branch", "kind type keys children")  # kind: tuple, list, named, dict


class Beside(list):
    """The values of a sample that are not in its row; or, for a whole batch, one such list for each sample."""


class NoLayout(Exception):
    """The sample has something that only default_collate itself can handle."""


# --- learning ---


def _plain(tensor):
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor).resolve_conj()


def _tensor_leaf(value):
    kind = type(value)
    if kind is not torch.Tensor:
        if not kind.__module__.startswith("torchvision.tv_tensors"):
            raise NoLayout(kind)
        value = _plain(value)
    dense = value.layout is torch.strided and value.device.type == "cpu" and not (
        value.requires_grad or value.is_quantized or value.is_nested)  # fmt: skip
    if not dense:
        raise NoLayout(kind)
    return Leaf("tensor", kind, value.dtype, tuple(value.shape), None)


def _numpy_leaf(value):
    kind = type(value)
    is_array = isinstance(value, numpy.ndarray)  # memmap is one too
    if is_array and value.flags.carray and value.dtype in NUMPY_TYPES:  # the first operations of torch take a while
        return Leaf("array", kind, NUMPY_TYPES[value.dtype], value.shape, value.dtype)
    try:
        batch = torch.as_tensor(value).unsqueeze(0) if is_array else torch.as_tensor([value])
    except (TypeError, ValueError, RuntimeError) as error:
        raise NoLayout(kind) from error
    if not value.dtype.isnative or batch.element_size() != value.dtype.itemsize or batch.numpy().dtype != value.dtype:
        raise NoLayout(kind)
    return Leaf("array" if is_array else "scalar", kind, batch.dtype, tuple(value.shape), value.dtype)


def _learn(value):
    kind = type(value)
    if kind in NUMBERS:
        name, dtype = NUMBERS[kind]
        return Leaf(name, kind, dtype, (), None)
    if kind in (str, bytes):
        return Leaf("other", kind, None, (), None)
    if isinstance(value, torch.Tensor):
        return _tensor_leaf(value)
    if kind.__module__ == "numpy" and hasattr(value, "dtype"):
        return _numpy_leaf(value)
    if kind is dict:
        return Branch("dict", dict, tuple(value), tuple(map(_learn, value.values())))
    if kind in (tuple, list):
        return Branch(kind.__name__, kind, None, tuple(map(_learn, value)))
    if isinstance(value, tuple) and hasattr(kind, "_fields") and kind.__bases__ == (tuple,):
        return Branch("named", kind, None, tuple(map(_learn, value)))
    raise NoLayout(kind)


class Layout:
    """Where a sample's leaves go.  Two layouts are equal when their trees are."""

    def __init__(self, tree):
        self.tree = tree
        self._row_bytes = [leaf.dtype.itemsize * _count(leaf.shape) if leaf.dtype else 0 for leaf in _leaves(tree)]
        self._specs = {}  # by rows

    @classmethod
    def of(cls, sample):
        """The layout for samples such as this one; None when there is none."""
        if torch_collate.default_collate_fn_map != COLLATE_FUNCTIONS:
            return None
        try:
            tree = _learn(sample)
        except NoLayout:
            return None
        others = [leaf.kind == "other" for leaf in _leaves(tree)]
        return None if others and all(others) else cls(tree)

    def __eq__(self, other):
        return isinstance(other, Layout) and self.tree == other.tree

    def dumps(self):
        """As bytes, for another process; None where a type of the sample cannot be pickled."""
        try:
            return PLAIN + marshal.dumps(_plain_tree(self.tree))
        except KeyError:
            pass
        try:
            return PICKLED + pickle.dumps(self.tree)
        except Exception:
            return None

    @classmethod
    def loads(cls, data):
        """The layout that dumps gave."""
        kind, data = data[:1], data[1:]
        return cls(_tree_of(marshal.loads(data)) if kind == PLAIN else pickle.loads(data))

    def nbytes(self, rows):
        """Bytes of a slab."""
        return sum(aligned(n * rows) for n in self._row_bytes)

    def write(self, sample, address, row, rows):
        """Writes a sample into its row of the slab at an address.

        Returns what goes beside it, an empty list mostly; None: it does not fit.
        """
        spec = self._specs.get(rows)
        if spec is None:
            spec = self._specs[rows] = _spec(self.tree, self._offsets(rows))
        others = []
        return others if _core.write_row(spec, sample, address, row, others) else None

    def _offsets(self, rows):
        at = 0
        for n in self._row_bytes:
            yield at, n
            at += aligned(n * rows)

    def collated(self, slab, n, rows, beside=()):
        """The first n rows of a slab as default_collate gives them, over the slab's memory.

        beside: of each sample, what write() gave.
        """
        return _collated(self.tree, slab, n, self._offsets(rows), zip(*beside, strict=True), list)

    def read(self, slab, row, rows, others=()):
        """The sample in a row, as it was before it was written; arrays and tensors lie in the slab."""
        return _sample(self.tree, slab, row, self._offsets(rows), iter(others))


def _count(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


def _leaves(tree):
    if isinstance(tree, Leaf):
        yield tree
        return
    for child in tree.children:
        yield from _leaves(child)


def _spec(tree, offsets):
    """The tree as _core.write_row reads it (py_rows.c)."""
    if isinstance(tree, Branch):
        children = tuple(_spec(child, offsets) for child in tree.children)
        return ("dict", dict, tree.keys, children) if tree.kind == "dict" else ("tuple", tree.type, children)
    offset, row_bytes = next(offsets)
    if tree.kind == "other":
        return ("other", tree.type)
    if tree.kind == "tensor":
        plain = None if tree.type is torch.Tensor and not tree.dtype.is_complex else _plain
        return ("tensor", tree.type, offset, row_bytes, tree.dtype, tree.shape, NAMES, plain)
    if tree.kind == "array":
        return ("array", tree.type, offset, row_bytes, tree.source, tree.shape, NAMES)
    return (tree.kind, tree.type, offset, row_bytes)


# --- on the way to another process ---

# Most trees are written with names for their types: a pickle looks each of them up, in pages that a process which was
# just forked has to copy first.
PLAIN, PICKLED = b"m", b"p"
PLAIN_KEYS = (str, int, bytes)
TYPES = {kind.__name__: kind for kind in (int, float, bool, str, bytes, tuple, list, dict, numpy.ndarray, torch.Tensor)}
DTYPES = {str(dtype): dtype for dtype in NUMPY_TYPES.values()}
NUMPY_DTYPES = {dtype.str: dtype for dtype in NUMPY_TYPES}
_TYPE_NAMES, _DTYPE_NAMES, _NUMPY_NAMES = ({value: name for name, value in names.items()} | {None: None}
                                           for names in (TYPES, DTYPES, NUMPY_DTYPES))  # fmt: skip


def _plain_tree(tree):
    """The tree without types; KeyError where one has no name, or marshal may take a key for another."""
    if isinstance(tree, Branch):
        if tree.keys and not all(type(key) in PLAIN_KEYS for key in tree.keys):
            raise KeyError(tree.keys)
        return tree.kind, _TYPE_NAMES[tree.type], tree.keys, tuple(map(_plain_tree, tree.children))
    return tree.kind, _TYPE_NAMES[tree.type], _DTYPE_NAMES[tree.dtype], tree.shape, _NUMPY_NAMES[tree.source]


def _tree_of(plain):
    kind, name, *rest = plain
    if len(rest) == 2:
        return Branch(kind, TYPES[name], rest[0], tuple(map(_tree_of, rest[1])))
    return Leaf(kind, TYPES[name], rest[0] and DTYPES[rest[0]], rest[1], rest[2] and NUMPY_DTYPES[rest[2]])


# --- reading ---


def _tensor(slab, offset, dtype, shape):
    n = _count(shape)
    if n == 0:
        return torch.empty(shape, dtype=dtype)
    if dtype in TORCH_TYPES:  # half the time of what follows
        return torch.from_numpy(numpy.ndarray(shape, TORCH_TYPES[dtype], slab, offset))
    return torch.frombuffer(slab, dtype=dtype, count=n, offset=offset).view(shape)


def _collated(tree, slab, n, offsets, others, listed):
    """listed: what default_collate makes of strings here: a list, or below a sequence a tuple."""
    if isinstance(tree, Leaf):
        offset, _ = next(offsets)
        return listed(next(others)) if tree.kind == "other" else _tensor(slab, offset, tree.dtype, (n, *tree.shape))
    below = list if tree.kind == "dict" else tuple
    values = [_collated(child, slab, n, offsets, others, below) for child in tree.children]
    if tree.kind == "dict":
        return dict(zip(tree.keys, values, strict=True))
    return tree.type(*values) if tree.kind == "named" else values


def _sample(tree, slab, row, offsets, others):
    if isinstance(tree, Leaf):
        offset, row_bytes = next(offsets)
        if tree.kind == "other":
            return next(others)
        return _leaf(tree, _tensor(slab, offset + row * row_bytes, tree.dtype, tree.shape))
    values = [_sample(child, slab, row, offsets, others) for child in tree.children]
    if tree.kind == "dict":
        return dict(zip(tree.keys, values, strict=True))
    return tree.type(*values) if tree.kind == "named" else tree.type(values)


def _leaf(leaf, tensor):
    if leaf.kind == "tensor":
        return tensor if leaf.type is torch.Tensor else tensor.as_subclass(leaf.type)
    if leaf.kind == "array":
        return tensor.numpy()
    if leaf.kind == "scalar":
        return tensor.numpy()[()]
    return tensor.item()


# --- the registry ---

PAGE = 4096
STEP = 64
MAX_LAYOUTS = PAGE // STEP
LENGTH = struct.Struct("<I")


def new_layouts():
    """Return the descriptor of an empty file in memory."""
    return os.memfd_create("drapps-layouts")


def _end_of(data, at):
    """Return the end of the record at that offset; beyond the data where it is only partly written."""
    if at + LENGTH.size > len(data):
        return len(data) + 1
    return at + LENGTH.size + LENGTH.unpack_from(data, at)[0]


class LayoutRegistry:
    """The layouts in a file, by number.  No process holds the file's lock for longer than a write."""

    def __init__(self, fd):
        self.fd = fd
        self._known, self._read = [], 0

    def _catch_up(self):
        data, at = self._rest(), 0
        while (end := _end_of(data, at)) <= len(data):
            self._known.append(Layout.loads(data[at + LENGTH.size : end]))
            at = end
        self._read += at

    def _rest(self):
        data = b""
        while more := os.pread(self.fd, PAGE, self._read + len(data)):
            data += more
            if len(more) < PAGE:
                break
        return data

    def layout(self, number):
        """Return the layout with that number."""
        if number >= len(self._known):
            self._catch_up()
        return self._known[number]

    def number(self, layout):
        """The number of a layout, which is added when it is new; None when the registry is full, or cannot hold it."""
        if layout not in self._known:
            fcntl.lockf(self.fd, fcntl.LOCK_EX)
            try:
                self._catch_up()
                if layout not in self._known:
                    data = layout.dumps() if len(self._known) < MAX_LAYOUTS else None
                    if data is None:
                        return None
                    self._append(layout, data)
            finally:
                fcntl.lockf(self.fd, fcntl.LOCK_UN)
        return self._known.index(layout)

    def _append(self, layout, data):
        self._read += os.pwrite(self.fd, LENGTH.pack(len(data)) + data, self._read)
        self._known.append(layout)

    def slab_bytes(self, layout, number, rows):
        """Return the size of a slab, from which of_slab() gets the number."""
        return (layout.nbytes(rows) + PAGE - 1) // PAGE * PAGE + number * STEP

    def of_slab(self, nbytes):
        """Return the layout of a slab of that size."""
        return self.layout(nbytes % PAGE // STEP)
