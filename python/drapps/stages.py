"""Runs one sample through a chain with Python functions.

The chain is cut at the Python stages into native segments.  Each native node keeps its id of the whole chain, and with
it its random choices.  This module runs in the caller (workers=0) or in a worker process, and depends on neither.
"""

import hashlib
import pickle
import random
import struct
import sys
import traceback
from contextlib import nullcontext
from typing import NamedTuple

import numpy

from drapps import _core
from drapps.cached import using
from drapps.kept_prefix import KeptPrefix, kept_ops
from drapps.optable import TABLE, graph_json
from drapps.passes.bad_samples import ATTEMPTS
from drapps.pipeline import Node, PythonStage, check_field, kind_by_name
from drapps.printable import printable


# Kinds of which a sample has any number, and all kinds that are transformed with their image.
INSTANCES = ("boxes", "labels", "masks", "keypoints")
FOLLOWERS = ("mask", *INSTANCES)


class Sample(NamedTuple):
    """A sample in work: its fields, and the kind of each (image, mask, array, ...)."""

    id: int
    fields: dict
    kinds: dict


class UserError(Exception):
    """A Python stage failed; the cause is its exception."""


class SampleRunner:
    """Runs the samples of one pipeline, one at a time.

    alone: the process does nothing else, so the global random generators need not be restored.
    outputs: fields that are delivered; None: the image and its annotations.  It is an error if an op changed the image
        and not one of these.
    """

    def __init__(self, pipe, seed, shuffle, reference, cache=None, alone=False, outputs=None):
        self.dataset = pipe.dataset
        self.seed, self.shuffle, self.cache = seed, shuffle, cache
        self.guard = nullcontext() if alone else Restored()
        first, *rest = _cut(pipe.stages)
        names = _outputs([field[0] for field in pipe.dataset.fields], first)
        self.first = _core.open_runner(pipe.dataset, _graph(first), ",".join(names), reference)
        Delivered(outputs, rest).check(self.first, names)
        n = 0 if cache is None or reference else kept_ops(pipe.dataset, pipe.stages)
        fields = [field[0] for field in pipe.dataset.fields]
        self.kept = KeptPrefix(cache, pipe.dataset, first[:n], fields, _outputs(fields, first[:n])) if n else None
        self.after_kept = Segment(first[n:], reference, Delivered(outputs, rest)) if n and first[n:] else None
        later = [Delivered(outputs, rest[i + 1 :]) for i in range(len(rest))]
        self.rest = [part if isinstance(part, PythonStage) else Segment(part, reference, delivered)
                     for part, delivered in zip(rest, later)]  # fmt: skip

    def run(self, epoch, position):
        """Return the sample at a position of the epoch's order, or None if a filter dropped it."""
        return self.run_sample(epoch, *self.place(epoch, position))

    def run_sample(self, epoch, sample_id, occurrence):
        """Return a sample by its id and the occurrence that keys its random choices."""
        name = (self.seed, epoch, sample_id, occurrence)
        sample = self._first_sample(name)
        for part in self.rest:
            if isinstance(part, Segment):
                sample = part.run(sample, name)
                continue
            with self.guard, using(self.cache):
                seed_generators(*name)
                sample = _call(part, sample, self.dataset)
            if sample is None:
                return None
        return sample

    def _first_sample(self, name):
        """The sample after the ops before the first function."""
        if self.kept is None:
            return from_rows(name[2], self.first.run(*name))
        sample = Sample(name[2], **self.kept.run(name, from_rows))
        return self.after_kept.run(sample, name) if self.after_kept else sample

    def place(self, epoch, position):
        """Return the id of the sample at a position, and how often it occurred earlier in the epoch."""
        return _core.order_sample(self.dataset, self.seed, epoch, self.shuffle, position)


class Delivered:
    """The fields that reach the batch as native ops leave them.

    A later function may adapt its field to the changed image; one that gets the whole sample may adapt all fields.
    """

    def __init__(self, outputs, later):
        maps = [stage for stage in later if isinstance(stage, PythonStage) and stage.kind == "map"]
        self.outputs, self.mapped = outputs, {stage.field for stage in maps}

    def check(self, runner, names):
        """Raise if an op of the runner changed the image and not a field that belongs to it."""
        if None not in self.mapped:
            runner.check(",".join(n for n in names if n not in self.mapped and (not self.outputs or n in self.outputs)))


class Segment:
    """Native ops after a Python stage.  Functions may return different types and shapes: each form
    has its own runner."""

    def __init__(self, nodes, reference, delivered):
        self.nodes, self.delivered = nodes, delivered
        self.graph = _graph(nodes)
        self.reference = reference
        self.runners = {}

    def run(self, sample, name):
        """Return the sample after the ops."""
        rows = [(field, *_to_native(field, value, sample.kinds.get(field, "array")))
                for field, value in sample.fields.items()]  # fmt: skip
        form = tuple((field, kind, _dtype(value), _extents(kind, value)) for field, kind, value in rows)
        if form not in self.runners:
            outputs = _outputs(sample.fields, self.nodes)
            self.runners[form] = _core.open_field_runner(form, self.graph, ",".join(outputs), self.reference)
            self.delivered.check(self.runners[form], outputs)
        buffers = tuple(value for _, _, value in rows)
        return from_rows(sample.id, self.runners[form].feed(buffers, *name))


def _outputs(names, nodes):
    """Return the names of all fields after some nodes."""
    return list(dict.fromkeys([*names, *(name for node in nodes for name in node.out)]))


def _dtype(value):
    return "uint8" if isinstance(value, bytes) else value.dtype.name


def _extents(kind, value):
    """Return what all samples of a form share: the number of axes, an image's channels, a box's four numbers."""
    if isinstance(value, bytes):
        return (-1,)
    known = value.shape[2:] if kind in ("image", "mask") else value.shape[-1:] if kind in ("boxes", "keypoints") else ()
    return (-1,) * (value.ndim - len(known)) + known


def _cut(stages):
    """Return alternating lists of native nodes and single Python stages, starting with a (maybe
    empty) list of nodes."""
    nodes = []
    started = False
    for stage in stages:
        if isinstance(stage, Node):
            _check(stage)
            nodes.append(stage)
            continue
        if nodes or not started:
            yield nodes
        yield stage
        nodes, started = [], True
    if nodes or not started:
        yield nodes


def _check(node):
    if "batch" in TABLE[node.op.name]["flags"]:
        raise _core.ArgumentError(f"{node.op.name} works on whole batches: it can be used neither beside Python "
                                  "functions nor before pipe[i]")  # fmt: skip


def _graph(nodes):
    return _core.graph_from_json(graph_json([node.to_json() for node in nodes]))


# --- conversion between native arrays and Python values ---


def from_rows(sample_id, rows):
    """Return a Sample from the rows of a runner."""
    fields = {name: _to_python(*row) for name, *row in rows}
    return Sample(sample_id, fields, {row[0]: row[1] for row in rows})


def _to_python(kind, dtype, dims, data):
    """Return a number for a scalar, a text or bytes unchanged, and for the rest a NumPy array over the memory."""
    if kind == "text":
        return data.decode("utf-8", "surrogateescape")
    if kind == "bytes":
        return bytes(data)
    if dtype == "bfloat16":
        raise _core.UnsupportedError("bfloat16 has no NumPy type: cast after the Python functions, or to float32")
    array = numpy.frombuffer(data, dtype).reshape(dims)
    return array.item() if not dims else array


def _to_native(name, value, kind):
    """Return (kind, buffer) of a field for native ops."""
    if isinstance(value, str):
        return "text", value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes" if kind != "text" else kind, bytes(value)
    array = to_array(name, value)
    array = (
        numpy.ascontiguousarray(array, "float32" if kind in ("boxes", "keypoints") else None) if array.ndim else array
    )
    if kind in ("bytes", "text"):  # decoded by a function: an image if it has the shape of one
        kind = "image" if array.ndim == 3 and array.shape[-1] <= 4 else "array"
    return kind, array


def to_array(name, value):
    """Return a function's result for a field as a NumPy array.  Accepts tensors, PIL images, numbers and lists."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    array = numpy.asarray(value)
    if array.dtype == object:
        raise _core.ArgumentError(
            f'field "{name}" must be an array, a number, a text or bytes, got {type(value).__name__}'
        )
    return array


# --- calling functions ---


def _call(stage, sample, dataset):
    """Return the sample after a Python stage; None if it was dropped."""
    try:
        if stage.field is not None:
            check_field(stage.kind, stage.field, sample.fields)
        given = dict(sample.fields) if stage.field is None else sample.fields[stage.field]
        result = stage.function(given)
    except Exception as error:
        name = getattr(stage.function, "__name__", repr(stage.function))
        error.add_note(f"in {stage.kind}({name}) of sample {printable(dataset.key(sample.id))}")
        raise UserError from error
    if stage.kind == "filter":
        return sample if result else None
    if stage.field is not None:
        return sample._replace(fields={**sample.fields, stage.field: result})
    if not isinstance(result, dict):
        raise _core.ArgumentError(f"map: the function must return a dict of fields, got {type(result).__name__}")
    return sample._replace(fields=result, kinds={**_kinds_of_new(result, sample.kinds), **sample.kinds})


def _kinds_of_new(fields, known):
    """Return the kinds of fields that a function added, by their names as in from_arrays."""
    new = [name for name in FOLLOWERS if name in fields and name not in known]
    return {name: kind_by_name(name, to_array(name, fields[name]).shape, fields) for name in new}


def seed_generators(*key):
    """Seed the global generators of Python, NumPy and torch for one sample.

    A function that uses them then returns the same in every process.
    """
    value = int.from_bytes(hashlib.blake2b(struct.pack("<4Q", *key), digest_size=4).digest(), "little")
    random.seed(value)
    numpy.random.seed(value)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(value)


class Restored:
    """Restores the global generators at the end of a with block."""

    def __enter__(self):
        self.python, self.numpy = random.getstate(), numpy.random.get_state()
        self.torch = sys.modules.get("torch")
        if self.torch:
            self.torch_state = self.torch.get_rng_state()

    def __exit__(self, *exc):
        random.setstate(self.python)
        numpy.random.set_state(self.numpy)
        if self.torch:
            self.torch.set_rng_state(self.torch_state)


# --- outcomes of samples ---


# Errors of a sample's data, which on_bad_sample handles.
BAD_DATA = (_core.FormatError, _core.IOError, _core.LimitError, _core.UnsupportedError, _core.FileMissingError)


class Outcome(NamedTuple):
    """The outcome of a position: "sample", "dropped" (by a filter), "left_out" (bad, and skipped), or "failed"."""

    position: int
    what: str
    sample: object = None
    id: int = -1
    error: object = None
    bad: dict | None = None  # the bad sample at this position: position, id, key, error and action


class Group(NamedTuple):
    """The outcomes of a batch, or of a part of the order."""

    outcomes: list
    fields: dict | None = None  # fields of the collated batch; the outcomes then have no samples


class Maker:
    """Makes outcomes, one at a time; on_bad: "raise", "skip" or "replace"."""

    def __init__(self, runner, on_bad):
        self._runner, self._on_bad = runner, on_bad

    def make(self, epoch, position):
        """Return the outcome at a position of the epoch's order."""
        outcome = self._try(epoch, position, *self._runner.place(epoch, position))
        return self.bad(epoch, position, outcome.error) if outcome.what == "bad" else outcome

    def _try(self, epoch, position, sample_id, occurrence):
        """Return an outcome: "failed" for errors of user functions, "bad" for errors of the data."""
        try:
            sample = self._runner.run_sample(epoch, sample_id, occurrence)
        except UserError as error:
            return Outcome(position, "failed", error=error.__cause__)
        except BAD_DATA as error:
            return Outcome(position, "bad", error=error)
        return Outcome(position, "dropped") if sample is None else Outcome(position, "sample", sample, sample.id)

    def bad(self, epoch, position, error):
        """Return the outcome of a sample that cannot be made."""
        if self._on_bad == "raise":
            return Outcome(position, "failed", error=error)
        sample_id, occurrence = self._runner.place(epoch, position)
        note = {"position": position, "id": sample_id, "key": self._runner.dataset.key(sample_id), "error": str(error)}
        if self._on_bad == "skip":
            return Outcome(position, "left_out", bad={**note, "action": "skipped"})
        return self.replacement(epoch, note, occurrence)._replace(position=position, bad={**note, "action": "replaced"})

    def replacement(self, epoch, note, occurrence=0):
        """Return a good sample to replace the bad one of the note; passes/bad_samples.py has the rule."""
        runner = self._runner
        for attempt in range(ATTEMPTS):
            other = self._try(epoch, note["position"], *_core.replacement_sample(
                runner.dataset, runner.seed, epoch, note["id"], occurrence, attempt))  # fmt: skip
            if other.what in ("sample", "failed"):
                return other
        text = f"{note['key']}: {note['error']}; found no sample to replace it"
        return Outcome(note["position"], "failed", error=_core.BadSampleError(text))

    def name(self, epoch, position):
        """Return the name of the sample at a position."""
        return self._runner.dataset.key(self._runner.place(epoch, position)[0])


def portable(outcome):
    """Return the outcome with an error that can be pickled and has its traceback as a note."""
    if outcome.what != "failed":
        return outcome
    error = outcome.error
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"traceback in the worker process:\n{text}")
    return outcome._replace(error=error)


def gathered(outcomes, collate):
    """Return the group of a batch's outcomes, with fields made by collate(samples); None: collated elsewhere."""
    samples = [outcome.sample for outcome in outcomes if outcome.what == "sample"]
    whole = all(outcome.what in ("sample", "left_out") for outcome in outcomes)
    if collate is None or not samples or not whole:
        return Group(outcomes)
    return Group([outcome._replace(sample=None) for outcome in outcomes], collate(samples))


def filled(outcomes, batch_size):
    """Yield one group per batch; samples that a filter dropped do not count."""
    group, n = [], 0
    for outcome in outcomes:
        group.append(outcome)
        n += outcome.what != "dropped"
        if n == batch_size or outcome.what == "failed":
            yield Group(group)
            group, n = [], 0
    yield Group(group)
