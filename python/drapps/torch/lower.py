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
from drapps.pipeline import Pipeline
from drapps.torch.lower_rows import NotNative
from drapps.torch.lower_tree import Ids, read_tree


ONE_BY_ONE = (
    "batches are not made natively: "
    "the samples are needed one by one, for collate_fn, batch_size=None or worker_init_fn"
)


class Plan:
    """What to do with a data set.

    pipe: a Pipeline that makes whole batches, or None.
    ids: for pipe, a function from indices of the data set to ids of pipe.dataset; raises what the data set would.
    outputs: for pipe, the fields that its loader has to deliver.
    dataset: without pipe, what worker processes index; mixed: what of it has a native beginning.
    lines: what runs where, and why not natively.
    """

    def __init__(self, dataset, lines, signature, pipe=None, ids=None, outputs=(), mixed=()):
        self.dataset, self.lines, self.mixed = dataset, tuple(lines), tuple(mixed)
        self.pipe, self.ids, self.outputs = pipe, ids, outputs
        self._signature = signature  # equal for plans that do the same, but for the ids
        self.opened = {}  # {id(data set of a leaf): (it, what it was made of, native data set)}

    def deliver(self, batch):
        """What default_collate would have made of a native batch: a list of tensors.

        Samples whose shape was not known beforehand come one by one: torch stacks them, or says why it cannot.
        """
        fields = [batch[name] for name in self.outputs]
        return [default_collate(field) if isinstance(field, list) else field for field in fields]

    @property
    def is_native(self):
        """Whether whole batches are made natively."""
        return self.pipe is not None

    def equals(self, other):
        """Whether two plans do the same."""
        if self._signature != other._signature:
            return False
        return self.ids is None or numpy.array_equal(self.ids.table, other.ids.table)


def lower(dataset, collate_fn_is_default=True, previous=None):
    """The plan for a data set.

    collate_fn_is_default: samples are put together by torch's default_collate; else they are needed one by one.
    previous: an earlier plan: what has not changed is taken from it, and it is returned itself if nothing has.
    """
    tree = read_tree(dataset)
    opened = dict(previous.opened) if previous else {}
    if collate_fn_is_default:
        try:
            plan = _whole(tree, opened)
        except NotNative as reason:
            plan = _single(tree, f"batches are not made natively: {reason}")
    else:
        plan = _single(tree, ONE_BY_ONE)
    plan.opened = {id(leaf.dataset): opened[id(leaf.dataset)] for leaf in tree.leaves() if id(leaf.dataset) in opened}
    return previous if previous and plan.equals(previous) else plan


# --- whole batches ---


def _whole(tree, opened):
    leaves = _distinct(tree.leaves())
    for leaf in leaves:
        _check_whole(leaf, leaves[0])
    natives = [_open(leaf, opened) for leaf in leaves]
    spans, start = {}, 0
    for leaf, native in zip(leaves, natives):
        spans[id(leaf.dataset)] = range(start, start + native.size)
        start += native.size
    table = tree.places(spans)
    pipe = Pipeline(_joined(natives))
    for op in leaves[0].ops:
        pipe = pipe.op(op)
    _check_graph(pipe)
    outputs = leaves[0].family.fields(leaves[0].dataset)
    signature = ("native", tuple(map(id, natives)), leaves[0].ops)
    lines = [line for leaf in leaves for line in _lines(leaf, "native")]
    return Plan(tree.dataset, lines, signature, pipe, Ids(table, tree.dataset), outputs)


def _distinct(leaves):
    return list({id(leaf.dataset): leaf for leaf in leaves}.values())


def _check_whole(leaf, first):
    if leaf.family is None:
        raise NotNative(f"{type(leaf.dataset).__name__}: {leaf.reason}")
    if leaf.family.why_not_whole:
        raise NotNative(f"{type(leaf.dataset).__name__}: {leaf.family.why_not_whole}")
    if leaf.chain.rest:
        raise NotNative("some transforms run in Python")
    if getattr(leaf.dataset, "target_transform", None) is not None:
        raise NotNative("target_transform runs in Python")
    if leaf.chain.form is not None and leaf.chain.form.is_pil:
        raise NotNative("PIL images come out, of which no batch can be made")
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
        raise NotNative(str(error)) from None
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


def _single(tree, reason):
    leaves = _distinct(tree.leaves())
    mixed = {id(leaf.dataset): _mixed(leaf) for leaf in leaves}
    begun = [mixed[id(leaf.dataset)] for leaf in leaves if leaf.ops]
    dataset = tree.rebuild(lambda leaf: mixed[id(leaf.dataset)]) if begun else tree.dataset
    lines = [line for leaf in leaves for line in _lines(leaf, "mixed" if leaf.ops else "Python")]
    return Plan(dataset, [*lines, reason], ("single", tree.shape()), mixed=begun)


def _mixed(leaf):
    """The data set with its native beginning, or itself where there is none."""
    if not leaf.ops:
        return leaf.dataset
    from drapps.torch.lower_mixed import MixedDataset

    return MixedDataset(leaf.dataset, leaf.family, leaf.ops, leaf.chain.form, leaf.chain.rest)


# --- words ---

HOW = {
    "native": "native: batches are made by threads",
    "mixed": "native in worker processes, up to the first Python code",
    "Python": "Python",
}


def _lines(leaf, how):
    """What becomes of a leaf, one line for the data set and one for each transform."""
    head = f"{type(leaf.dataset).__name__}: {HOW[how]}" + (f", {leaf.reason}" if leaf.reason else "")
    yield head
    for line in leaf.chain.lines:
        yield "  " + line
    if getattr(leaf.dataset, "target_transform", None) is not None and leaf.family:
        yield "  target_transform: Python"
