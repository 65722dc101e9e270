"""Data sets inside of data sets: Subset and ConcatDataset around leaves, and from an index to a leaf's sample."""

import copy
import operator
import sys
from typing import NamedTuple

import numpy
import torch
from torch.utils.data import ConcatDataset, Subset

from drapps.torch.lower_chain import Chain, load_rows, lower_chain
from drapps.torch.lower_datasets import family_of
from drapps.torch.lower_exact_code import check_class, check_object
from drapps.torch.lower_rows import NotNative
from drapps.torch.lower_exact_code import Holds, held_dataset, with_held

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
        """A Subset of the rebuilt data set, with whatever attributes the original has."""
        rebuilt = copy.copy(self.dataset)
        rebuilt.dataset = self.inner.rebuild(wrap)
        return rebuilt

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


class Wrapped(NamedTuple):
    """A data set of a user's that hands on the items of another one, as they are or with their image transformed."""

    dataset: object
    holds: Holds
    inner: object

    def rebuild(self, wrap):
        """A wrapper like it around the rebuilt data set."""
        return with_held(self.dataset, self.holds.name, self.inner.rebuild(wrap))

    def shape(self):
        """As Leaf.shape."""
        return id(self.dataset), self.holds.name, tuple(map(id, self.holds.transforms)), self.inner.shape()

    def leaves(self):
        """Those of the data set inside."""
        return self.inner.leaves()

    def places(self, spans):
        """Those of the data set inside."""
        return self.inner.places(spans)


class Joined(NamedTuple):
    """A ConcatDataset."""

    dataset: ConcatDataset
    inner: tuple

    def rebuild(self, wrap):
        """A ConcatDataset of the rebuilt data sets; all else, as the sizes noted when it was made,
        is the original's."""
        rebuilt = copy.copy(self.dataset)
        rebuilt.datasets = [node.rebuild(wrap) for node in self.inner]
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


def read_tree(dataset, later=(), around=()):
    """The tree of a data set.

    later: transforms that are called on the images of its items; None: those of wrappers are left to these.
    around: the data sets that it is in.
    """
    around = (*around, dataset)
    try:
        if type(dataset) is Subset:
            return Part(_genuine(dataset), read_tree(dataset.dataset, later, around))
        if type(dataset) is ConcatDataset:
            return Joined(_genuine(dataset), tuple(read_tree(part, later, around) for part in dataset.datasets))
        holds = held_dataset(dataset)
        held = holds and getattr(dataset, holds.name)
        if holds and not any(held is other for other in around):
            load_rows()
            inside = None if later is None else (*holds.transforms, *later)
            return Wrapped(dataset, holds, read_tree(held, inside, around))
        family = family_of(dataset)
    except NotNative as reason:
        return Leaf(dataset, None, Chain((), None, tuple(later or ()), ()), str(reason))
    form = family.form(dataset)
    if form is None:
        return Leaf(dataset, family, Chain((), None, tuple(later or ()), ()))
    if later and form.targets:
        why = "a data set around it transforms the image alone, and not its boxes"
        return Leaf(dataset, None, Chain((), None, tuple(later), ()), why)
    load_rows()
    return Leaf(dataset, family, lower_chain(family.transform(dataset), form, *(later or ())))


def _genuine(dataset):
    check_object(dataset)
    check_class(type(dataset), (sys.modules["torch.utils.data"].Dataset, object))
    return dataset


class Ids:
    """From indices of a data set to ids of the native one, with the exceptions of a list."""

    def __init__(self, table, tree):
        while type(tree) is Wrapped:
            tree = tree.inner
        self.table = table
        self.is_joined = type(tree) is Joined

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
