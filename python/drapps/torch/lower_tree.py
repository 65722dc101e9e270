"""Data sets inside of data sets: Subset and ConcatDataset around leaves, and from an index to a leaf's sample."""

import operator
import sys
from typing import NamedTuple

import numpy
import torch
from torch.utils.data import ConcatDataset, Subset

from drapps.torch.lower_chain import Chain, load_rows, lower_chain
from drapps.torch.lower_families import family_of
from drapps.torch.lower_genuine import check_class, check_object
from drapps.torch.lower_rows import NotNative

NOTHING = Chain((), None, (), ())
INDEX_TYPES = (list, tuple, range, numpy.ndarray, torch.Tensor)


class Leaf(NamedTuple):
    """A data set that reads something, its family, and what became of its transform."""

    dataset: object
    family: object  # None: only Python can read it
    chain: Chain
    reason: str = ""  # why only Python can

    @property
    def ops(self):
        """All that runs natively."""
        return (*self.family.first_ops(self.dataset), *self.chain.ops) if self.family else ()

    def rebuild(self, wrap):
        """The data set with each leaf replaced by what wrap makes of it."""
        return wrap(self)

    def shape(self):
        """Equal for trees of the same objects, as long as these are alive."""
        rest = tuple(map(id, self.chain.rest))
        return id(self.dataset), self.ops, self.chain.form, rest, id(getattr(self.dataset, "target_transform", None))

    def leaves(self):
        """Itself."""
        return [self]

    def places(self, spans):
        """The ids of its samples, in the order of its indices; spans: {id(data set of a leaf): range of ids}."""
        span = spans[id(self.dataset)]
        return numpy.arange(span.start, span.stop, dtype=numpy.int64)


class Part(NamedTuple):
    """A Subset."""

    dataset: Subset
    inner: object

    def rebuild(self, wrap):
        """A Subset of the rebuilt data set."""
        return Subset(self.inner.rebuild(wrap), self.dataset.indices)

    def shape(self):
        """As Leaf.shape."""
        return id(self.dataset), id(self.dataset.indices), self.inner.shape()

    def leaves(self):
        """Those of the data set inside."""
        return self.inner.leaves()

    def places(self, spans):
        """Some of those of the data set inside; what it would refuse is refused here."""
        inside = self.inner.places(spans)
        if type(self.dataset.indices) not in INDEX_TYPES:
            raise NotNative(f"the indices of a Subset are a {type(self.dataset.indices).__name__}")
        indices = numpy.asarray(self.dataset.indices)
        if indices.ndim != 1 or (len(indices) and indices.dtype.kind not in "iu"):
            raise NotNative("the indices of a Subset are not a list of whole numbers")
        if len(indices) and not -len(inside) <= indices.min() <= indices.max() < len(inside):
            raise NotNative("a Subset has indices outside of its data set")
        return inside[indices.astype(numpy.int64)]


class Joined(NamedTuple):
    """A ConcatDataset."""

    dataset: ConcatDataset
    inner: tuple

    def rebuild(self, wrap):
        """A ConcatDataset of the rebuilt data sets, with the sizes that the original noted when it was made."""
        rebuilt = ConcatDataset([node.rebuild(wrap) for node in self.inner])
        rebuilt.cumulative_sizes = self.dataset.cumulative_sizes
        return rebuilt

    def shape(self):
        """As Leaf.shape."""
        return (id(self.dataset), tuple(self.dataset.cumulative_sizes), *(node.shape() for node in self.inner))

    def leaves(self):
        """Those of all."""
        return [leaf for node in self.inner for leaf in node.leaves()]

    def places(self, spans):
        """One after the other."""
        inside = [node.places(spans) for node in self.inner]
        if list(numpy.cumsum([len(part) for part in inside])) != list(self.dataset.cumulative_sizes):
            raise NotNative("the parts of a ConcatDataset have changed since it was made")
        return numpy.concatenate(inside)


def read_tree(dataset):
    """The tree of a data set."""
    try:
        if type(dataset) is Subset:
            return Part(_genuine(dataset), read_tree(dataset.dataset))
        if type(dataset) is ConcatDataset:
            return Joined(_genuine(dataset), tuple(read_tree(part) for part in dataset.datasets))
        family = family_of(dataset)
    except NotNative as reason:
        return Leaf(dataset, None, NOTHING, str(reason))
    form = family.form(dataset)
    if form is None:
        return Leaf(dataset, family, NOTHING)
    load_rows()
    return Leaf(dataset, family, lower_chain(dataset.transform, form))


def _genuine(dataset):
    check_object(dataset)
    check_class(type(dataset), (sys.modules["torch.utils.data"].Dataset, object))
    return dataset


class Ids:
    """From indices of a data set to ids of the native one, with the exceptions of a list."""

    def __init__(self, table, dataset):
        self.table = table
        self.is_joined = type(dataset) is ConcatDataset

    def is_part_of(self, n):
        """Whether they are some of n ids, not all and not none."""
        return 0 < len(numpy.unique(self.table)) < n

    def index_of(self, native):
        """The first index of the data set that an id of the native one has; None: it has none."""
        found = numpy.flatnonzero(self.table == native)
        return int(found[0]) if found.size else None

    def __call__(self, indices):
        """An int64 array for a sequence of indices, an int for one."""
        if not hasattr(indices, "__len__") or getattr(indices, "ndim", 1) == 0:
            return int(self([indices])[0])
        wanted = numpy.fromiter(map(operator.index, indices), numpy.int64, len(indices))
        n = len(self.table)
        if self.is_joined and (wanted < -n).any():
            raise ValueError("absolute value of index should not exceed dataset length")
        for index in wanted[(wanted < -n) | (wanted >= n)]:
            raise IndexError(f"index {index} is out of range: the data set has {n} samples")
        return self.table[wanted]
