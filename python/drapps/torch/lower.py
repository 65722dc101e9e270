"""Lowering: from a torch data set with its transforms to a native pipeline, as far as that gives the same result.

Three outcomes, each said in words by Plan.lines:

    native  data set and transforms have a native form: batches are made by the engine's threads
    mixed   a beginning of the transforms has: it runs in the worker process, before the Python rest
    Python  nothing has: the data set stays as it is

What is native must equal what torchvision gives: docs/parity.md has the tolerance of each op.  A class is recognised
exactly, so that user code is never passed over.
"""

import numpy
from torch.utils.data import default_collate

from drapps import _core
from drapps.torch.lower_chain import advice
from drapps.torch.lower_collate import DEFAULT, ZIP, as_in_a_worker
from drapps.torch.lower_rows import NotNative
from drapps.torch.lower_tree import Ids, Joined, Leaf, Wrapped, read_tree


class NotOpened(NotNative):
    """Samples of a data set whose class has a native form are not what that reads."""


class Plan:
    """What to do with a data set.

    pipe: a Pipeline that makes whole batches, or None.
    ids: for pipe, a function from indices of the data set to ids of pipe.dataset; raises what the data set would.
    outputs: for pipe, the fields that its loader has to deliver.
    collate: for pipe, what becomes of a batch then.
    finish: for detection, a function from a native batch to what is delivered; outputs and collate are not used then.
    goes_on: where a sample cannot be read, the data set itself knows what to do: its batch is made in Python.
    dataset: without pipe, what worker processes index; mixed: what of it has a native beginning.
    lines: what runs where, and why not natively.
    """

    def __init__(self, dataset, lines, signature, pipe=None, ids=None, outputs=(), mixed=(), collate=DEFAULT,
                 finish=None, goes_on=False):  # fmt: skip
        self.dataset, self.lines, self.mixed, self.collate = dataset, tuple(lines), tuple(mixed), collate
        self.pipe, self.ids, self.outputs, self.goes_on, self.finish = pipe, ids, outputs, goes_on, finish
        self._signature = signature  # equal for plans that do the same, but for the ids
        self.opened = {}  # {id(data set of a leaf): (it, what it was made of, native data set)}

    def deliver(self, batch):
        """What collate_fn would have made of the samples of a native batch: mostly a list of tensors.

        Samples whose shape was not known beforehand come one by one: torch stacks them, or says why it cannot.
        """
        if self.finish is not None:
            return self.finish(batch)
        fields = [batch[name] for name in self.outputs]
        fields = [default_collate(field) if isinstance(field, list) else field for field in fields]
        if self.collate.finish is None:
            return fields
        with as_in_a_worker():
            return self.collate.finish(fields)

    @property
    def is_native(self):
        """Whether whole batches are made natively."""
        return self.pipe is not None

    def equals(self, other):
        """Whether two plans do the same."""
        if self._signature != other._signature:
            return False
        return self.ids is None or numpy.array_equal(self.ids.table, other.ids.table)


def lower(dataset, whole=True, previous=None, why="the samples are needed one by one", collate=DEFAULT):
    """The plan for a data set.

    whole: samples are put together as `collate` says (see lower_collate); else they are needed one by one, and `why`
        says why.
    previous: an earlier plan: what has not changed is taken from it, and it is returned itself if nothing has.
    """
    tree = read_tree(dataset)
    opened = dict(previous.opened) if previous else {}
    if whole:
        try:
            plan = _whole(tree, opened, collate)
        except NotNative as reason:
            plan = _single(tree, f"batches are not made natively: {reason}", isinstance(reason, NotOpened))
    else:
        plan = _single(tree, f"batches are not made natively: {why}{_further_reason(tree)}")
    plan.opened = {id(leaf.dataset): opened[id(leaf.dataset)] for leaf in tree.leaves() if id(leaf.dataset) in opened}
    return previous if previous and plan.equals(previous) else plan


# --- whole batches ---


def _whole(tree, opened, collate):
    leaves = tree.leaves()
    for leaf in leaves:  # wrappers may transform one data set in several ways
        _check_whole(leaf, leaves[0])
    collate.check(leaves[0].chain.form)
    leaves = _distinct(leaves)
    natives = [_open(leaf, opened) for leaf in leaves]
    spans, start = {}, 0
    for leaf, native in zip(leaves, natives):
        spans[id(leaf.dataset)] = range(start, start + native.size)
        start += native.size
    table = tree.places(spans)
    for leaf in leaves:
        span = spans[id(leaf.dataset)]
        used = table[(table >= span.start) & (table < span.stop)] - span.start
        leaf.family.check_used(leaf.dataset, leaf.chain, used)
    family, starts = leaves[0].family, [span.start for span in spans.values()]
    pipe = family.pipeline(_joined(natives), leaves[0].ops)
    finish = family.finish(leaves, starts) if collate is ZIP else None
    _check_graph(pipe)
    outputs = family.fields(leaves[0].dataset)
    signature = ("native", tuple(map(id, natives)), leaves[0].ops, leaves[0].chain.form, collate.key)
    lines = [line for leaf in leaves for line in _lines(leaf, "native")] + [collate.line] * bool(collate.line)
    return Plan(tree.dataset, lines, signature, pipe, Ids(table, tree), outputs, collate=collate,
                finish=finish, goes_on=family.goes_on)  # fmt: skip


def _further_reason(tree):
    """Why batches could not be made natively anyway, for the end of a line; empty where they could."""
    leaves = tree.leaves()
    try:
        for leaf in leaves:
            _check_whole(leaf, leaves[0])
    except NotNative as reason:
        return f"; besides, {reason}"
    return ""


def _distinct(leaves):
    return list({id(leaf.dataset): leaf for leaf in leaves}.values())


def _check_whole(leaf, first):
    if leaf.family is None:
        raise NotNative(f"{type(leaf.dataset).__name__}: {leaf.reason}")
    if leaf.family.why_not_whole:
        raise NotNative(f"{type(leaf.dataset).__name__}: {leaf.family.why_not_whole}")
    if leaf.chain.rest:
        raise NotNative("some transforms run in Python" + (advice(leaf.chain) if leaf.family.mixes else ""))
    if getattr(leaf.dataset, "target_transform", None) is not None:
        raise NotNative("target_transform runs in Python")
    if leaf.chain.form is not None and leaf.chain.form.is_pil:
        raise NotNative("the transforms return PIL images, which cannot be batched")
    if leaf.family is not first.family or leaf.ops != first.ops or leaf.chain.form != first.chain.form:
        raise NotNative("its parts are not transformed alike")


def _open(leaf, opened):
    """The native data set of a leaf: the earlier one if nothing has changed."""
    entry = opened.get(id(leaf.dataset))
    if entry and entry[0] is leaf.dataset and leaf.family.still(leaf.dataset, entry[1]):
        return entry[2]
    kept = leaf.family.keep(leaf.dataset)
    try:
        native = leaf.family.open(leaf.dataset)
    except (_core.Error, TypeError, ValueError, OverflowError) as error:
        raise NotOpened(str(error)) from None
    opened[id(leaf.dataset)] = (leaf.dataset, kept, native)
    return native


def _joined(natives):
    if len(natives) == 1:
        return natives[0]
    try:
        return _core.mix(tuple(natives), tuple(float(native.size) for native in natives))
    except (_core.Error, ValueError) as error:
        raise NotNative(str(error)) from None


def _check_graph(pipe):
    """The library's own checks of the ops against the fields, before anything is promised."""
    try:
        pipe.explain()
    except _core.Error as error:
        raise NotNative(str(error)) from None


# --- samples one by one ---


def _single(tree, reason, looked_at=False):
    """looked_at: the samples were, and there was one that is not read natively."""
    of_wrappers = list(_of_wrappers(tree))
    if of_wrappers:  # which go on to call their transforms themselves
        tree = read_tree(tree.dataset, None)
    leaves = _distinct(tree.leaves())
    mixed = {id(leaf.dataset): _mixed(leaf) for leaf in leaves}
    begun = [mixed[id(leaf.dataset)] for leaf in leaves if _is_mixed(leaf)]
    dataset = tree.rebuild(lambda leaf: mixed[id(leaf.dataset)]) if begun else tree.dataset
    partly = {id(leaf.dataset): leaf.family.partly(leaf.dataset) for leaf in leaves if looked_at and leaf.family}
    lines = [line for leaf in leaves
             for line in _lines(leaf, "mixed" if _is_mixed(leaf) else "Python",
                                partly.get(id(leaf.dataset), ""))]  # fmt: skip
    return Plan(dataset, [*lines, *of_wrappers, reason], ("single", tree.shape()), mixed=begun)


def _of_wrappers(tree):
    """Lines for data sets that transform the items of another one."""
    if type(tree) is Wrapped and tree.holds.transforms:
        yield f"{type(tree.dataset).__name__}: its transform runs in Python"
        for leaf in _distinct(tree.leaves()):
            yield from ("  " + line for line in leaf.chain.lines if ": Python" in line)
    elif not isinstance(tree, Leaf):
        for node in tree.inner if isinstance(tree, Joined) else (tree.inner,):
            yield from _of_wrappers(node)


def _is_mixed(leaf):
    return bool(leaf.ops) and leaf.family.mixes


def _mixed(leaf):
    """The data set with its native beginning, or itself where there is none."""
    if not _is_mixed(leaf):
        return leaf.dataset
    from drapps.torch.lower_mixed import MixedDataset

    return MixedDataset(leaf.dataset, leaf.family, leaf.ops, leaf.chain.form, leaf.chain.rest)


# --- words ---

HOW = {
    "native": "native: batches are made by threads",
    "mixed": "native in worker processes, up to the first Python code",
    "Python": "Python",
}


def _lines(leaf, how, partly=""):
    """What becomes of a leaf, one line for the data set and one for each transform."""
    yield f"{type(leaf.dataset).__name__}: {HOW[how]}{partly}" + (f", {leaf.reason}" if leaf.reason else "")
    for line in leaf.chain.lines:
        if how != "Python" or ": Python" in line:
            yield "  " + line
    if getattr(leaf.dataset, "target_transform", None) is not None and leaf.family:
        yield "  target_transform: Python"
