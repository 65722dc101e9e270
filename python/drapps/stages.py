"""Running one sample through a chain that has Python functions.

The chain is cut at the Python stages into native segments.  Each native node keeps the id it has in the whole chain, so
it draws what it would draw in a chain without Python.  This module runs in the caller (workers=0) or in a worker
process; it knows nothing of either.
"""

import hashlib
import random
import struct
import sys
from typing import NamedTuple

import numpy

from drapps import _core
from drapps.optable import TABLE, graph_json
from drapps.pipeline import Node, PythonStage


class Sample(NamedTuple):
    """A sample on its way: its fields, and what the numbers of each mean (image, mask, array, ...)."""

    id: int
    fields: dict
    kinds: dict


class UserError(Exception):
    """A Python stage failed; the cause is its exception."""


class SampleRunner:
    """Runs the samples of one pipeline, one at a time."""

    def __init__(self, pipe, seed, shuffle, reference):
        self.dataset = pipe.dataset
        self.seed = seed
        self.parts = list(_cut(pipe.stages))
        first = self.parts.pop(0)
        options = {"seed": seed, "shuffle": shuffle, "reference": reference}
        self.first = _core.open_runner(pipe.dataset, _graph(first), **options)
        self.parts = [part if isinstance(part, PythonStage) else _core.open_applier(_graph(part), **options)
                      for part in self.parts]  # fmt: skip

    def run(self, epoch, position):
        """The sample at a position of the epoch's order, or None when a filter dropped it."""
        sample_id, occurrence, rows = self.first.run(epoch, position)
        sample = _from_rows(sample_id, rows)
        for part in self.parts:
            if isinstance(part, PythonStage):
                with Seeded(self.seed, epoch, sample_id, occurrence):
                    sample = _call(part, sample, self.dataset)
                if sample is None:
                    return None
            else:
                sample = _from_rows(sample_id, part.run(epoch, sample_id, occurrence, _to_rows(sample)))
        return sample

    def place(self, epoch, position):
        """The id of the sample at a position, and its key."""
        sample_id = self.first.place(epoch, position)
        return sample_id, self.dataset.key(sample_id)


def _cut(stages):
    """Lists of native nodes and single Python stages by turns; the first is a list of nodes, maybe empty."""
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
        raise _core.ArgumentError(f"{node.op.name} works on whole batches: a chain with Python functions cannot have it")


def _graph(nodes):
    return _core.graph_from_json(graph_json([node.to_json() for node in nodes]))


# --- between native arrays and what a Python function sees ---


def _from_rows(sample_id, rows):
    fields, kinds = {}, {}
    for name, kind, value in rows:
        fields[name] = _to_python(value)
        kinds[name] = kind
    return Sample(sample_id, fields, kinds)


def _to_python(value):
    """Numbers for scalars, texts and bytes as they are, NumPy arrays over the native memory for the rest."""
    if not isinstance(value, _core.Array):
        return value
    array = numpy.asarray(memoryview(value))
    return array.item() if array.ndim == 0 else array


def _to_rows(sample):
    return tuple((name, *_to_native(name, value, sample.kinds.get(name, "array")))
                 for name, value in sample.fields.items())  # fmt: skip


def _to_native(name, value, kind):
    if isinstance(value, str):
        return "text", value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes", value
    array = numpy.ascontiguousarray(to_array(name, value)) if numpy.ndim(value) else to_array(name, value)
    if kind in ("bytes", "text"):  # a function decoded it: an image if it has its shape
        kind = "image" if array.ndim == 3 and array.dtype in (numpy.uint8, numpy.uint16) else "array"
    return kind, array


def to_array(name, value):
    """What a function returned for a field as a NumPy array: tensors, PIL images, numbers and lists are understood."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    array = numpy.asarray(value)
    if array.dtype == object:
        raise _core.ArgumentError(f'field "{name}": {type(value).__name__} is no array, number, text or bytes')
    return array


# --- calling functions ---


def _call(stage, sample, dataset):
    """The sample after a Python stage; None: dropped."""
    try:
        given = dict(sample.fields) if stage.field is None else sample.fields[stage.field]
        result = stage.function(given)
    except Exception as error:
        name = getattr(stage.function, "__name__", repr(stage.function))
        error.add_note(f"in {stage.kind}({name}) of sample {dataset.key(sample.id)}")
        raise UserError from error
    if stage.kind == "filter":
        return sample if result else None
    if stage.field is not None:
        return sample._replace(fields={**sample.fields, stage.field: result})
    if not isinstance(result, dict):
        raise _core.ArgumentError(f"map: the function must return a dict of fields, got {type(result).__name__}")
    return sample._replace(fields=result)


class Seeded:
    """Global random generators of Python, NumPy and torch, seeded for one sample and put back afterwards.

    A function that uses them then gives the same result whichever process runs it.
    """

    def __init__(self, *key):
        self.value = int.from_bytes(hashlib.blake2b(struct.pack("<4Q", *key), digest_size=4).digest(), "little")

    def __enter__(self):
        self.python, self.numpy = random.getstate(), numpy.random.get_state()
        random.seed(self.value)
        numpy.random.seed(self.value)
        self.torch = sys.modules.get("torch")
        if self.torch:
            self.torch_state = self.torch.get_rng_state()
            self.torch.default_generator.manual_seed(self.value)

    def __exit__(self, *exc):
        random.setstate(self.python)
        numpy.random.set_state(self.numpy)
        if self.torch:
            self.torch.set_rng_state(self.torch_state)
