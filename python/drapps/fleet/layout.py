"""default_collate without a collate: where each number and array of a sample lies in a batch's slab.

A layout is learnt from one sample.  Workers write each sample into its row; the batch is then a tree of tensors over
the slab, equal to what torch's default_collate gives for the same samples.  A sample that differs in a type, a dtype, a
shape or a key does not fit, and its batch is left to default_collate itself.

A slab has one part for each leaf, 64-byte aligned, with one row for each sample.
"""

import pickle
import sys
from collections import namedtuple

import torch
from torch.utils.data._utils import collate as torch_collate

from drapps import _core

ALIGN = 64
NUMBERS = {int: ("int", torch.int64), float: ("float", torch.float64), bool: ("bool", torch.bool)}
COLLATE_FUNCTIONS = dict(torch_collate.default_collate_fn_map)  # a caller may add to torch's map later

# What py_rows.c asks of a tensor or an array, in its order.
NAMES = tuple(map(sys.intern, ("dtype", "shape", "is_cpu", "requires_grad", "is_contiguous", "is_neg", "data_ptr",
                               "resolve_neg", "contiguous")))  # fmt: skip

# kind: tensor, array, scalar, int, float, bool.  type: of the sample's leaf.  dtype: of the batch; source: what NumPy
# calls it.
Leaf = namedtuple("Leaf", "kind type dtype shape source")
Branch = namedtuple("Branch", "kind type keys children")  # kind: tuple, list, named, dict


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
    is_array = isinstance(value, sys.modules["numpy"].ndarray)  # memmap is one too
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
        self._row_bytes = [leaf.dtype.itemsize * _count(leaf.shape) for leaf in _leaves(tree)]
        self._specs = {}  # by rows

    @classmethod
    def of(cls, sample):
        """The layout for samples such as this one; None when there is none."""
        if torch_collate.default_collate_fn_map != COLLATE_FUNCTIONS:
            return None
        try:
            return cls(_learn(sample))
        except NoLayout:
            return None

    def __eq__(self, other):
        return isinstance(other, Layout) and self.tree == other.tree

    __hash__ = None

    def dumps(self):
        """As bytes, for another process."""
        return pickle.dumps(self.tree)

    @classmethod
    def loads(cls, data):
        """The layout that dumps gave."""
        return cls(pickle.loads(data))

    def nbytes(self, rows):
        """Bytes of a slab."""
        return sum(_aligned(n * rows) for n in self._row_bytes)

    def write(self, sample, address, row, rows):
        """Writes a sample into its row of the slab at an address; False: it does not fit."""
        spec = self._specs.get(rows)
        if spec is None:
            spec = self._specs[rows] = _spec(self.tree, self._offsets(rows))
        return _core.write_row(spec, sample, address, row)

    def _offsets(self, rows):
        at = 0
        for n in self._row_bytes:
            yield at, n
            at += _aligned(n * rows)

    def collated(self, slab, n, rows):
        """The first n rows of a slab as default_collate gives them, over the slab's memory."""
        return _collated(self.tree, slab, n, self._offsets(rows))

    def read(self, slab, row, rows):
        """The sample in a row, as it was before it was written; arrays and tensors lie in the slab."""
        return _sample(self.tree, slab, row, self._offsets(rows))


def _count(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


def _aligned(nbytes):
    return (nbytes + ALIGN - 1) // ALIGN * ALIGN


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
    if tree.kind == "tensor":
        plain = None if tree.type is torch.Tensor and not tree.dtype.is_complex else _plain
        return ("tensor", tree.type, offset, row_bytes, tree.dtype, tree.shape, NAMES, plain)
    if tree.kind == "array":
        return ("array", tree.type, offset, row_bytes, tree.source, tree.shape, NAMES)
    return (tree.kind, tree.type, offset, row_bytes)


# --- reading ---


def _tensor(slab, offset, dtype, shape):
    n = _count(shape)
    if n == 0:
        return torch.empty(shape, dtype=dtype)
    tensor = torch.frombuffer(slab, dtype=dtype, count=n, offset=offset)
    return tensor if len(shape) == 1 else tensor.view(shape)


def _collated(tree, slab, n, offsets):
    if isinstance(tree, Leaf):
        return _tensor(slab, next(offsets)[0], tree.dtype, (n, *tree.shape))
    values = [_collated(child, slab, n, offsets) for child in tree.children]
    if tree.kind == "dict":
        return dict(zip(tree.keys, values, strict=True))
    return tree.type(*values) if tree.kind == "named" else values


def _sample(tree, slab, row, offsets):
    if isinstance(tree, Leaf):
        offset, row_bytes = next(offsets)
        return _leaf(tree, _tensor(slab, offset + row * row_bytes, tree.dtype, tree.shape))
    values = [_sample(child, slab, row, offsets) for child in tree.children]
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
