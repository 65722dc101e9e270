"""Batch: the samples that a loader delivers together, and where they come from."""

import json
from collections.abc import Mapping

from drapps import _core
from drapps.counted import counted
from drapps.output import CONVERT, from_numpy


class Batch(Mapping):
    """One batch: a mapping from field names to arrays, with facts about its samples.

    A field is an array with one row per sample, or a list (texts, bytes, images of unequal size).  A padded field comes
    with `<name>_sizes`, the true extents of each sample, a ragged field with `<name>_offsets`.

    ids and positions tell which samples these are and where they are in the epoch's order.
    """

    __slots__ = ("_convert", "_core", "_fields", "output")

    def __init__(self, core, output):
        self._core = core
        self._fields = None
        self.output = output
        self._convert = CONVERT[output]

    @property
    def fields(self):
        """The fields as a dict, in the order of the loader's outputs."""
        if self._fields is None:
            self._fields = self._read_fields()
        return self._fields

    def _read_fields(self):
        fields = {}
        for i in range(self._core.n_fields):
            name, rule, value, extra = self._core.field(i)
            if rule == "list":
                value = [self._convert(v) if isinstance(v, _core.Array) else v for v in value]
            else:
                value = self._convert(value)
            fields[name] = value
            if rule == "pad":
                fields[f"{name}_sizes"] = self._integers(extra, self.samples)
            elif rule == "ragged":
                fields[f"{name}_offsets"] = self._integers(extra, 0)
        return fields

    def _integers(self, values, rows):
        import numpy

        array = numpy.array(values, dtype=numpy.int64)
        return from_numpy(array.reshape(rows, -1) if rows else array, self.output)

    # --- mapping ---

    def __getitem__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise _core.NotFoundError(f'no field "{name}"; the batch has {", ".join(self.fields)}') from None

    def __iter__(self):
        return iter(self.fields)

    def __len__(self):
        return len(self.fields)

    # --- facts ---

    @property
    def samples(self):
        """The number of samples."""
        return self._core.samples

    @property
    def number(self):
        """The number of the batch in the epoch, from 0."""
        return self._core.number

    @property
    def epoch(self):
        """The epoch that the batch belongs to."""
        return self._core.epoch

    @property
    def padded(self):
        """The number of samples at the end of the batch that repeat others, because of last="pad"."""
        return self._core.padded

    @property
    def ids(self):
        """The ids of the samples in the data set."""
        return self._core.ids

    @property
    def positions(self):
        """The positions of the samples in the epoch's order."""
        return self._core.positions

    @property
    def bad(self):
        """Samples that were left out or replaced: dicts with position, id, key, error and action."""
        text = self._core.bad
        return json.loads(text) if text != "[]" else []

    @property
    def error(self):
        """The exception of a batch of pushed_order=True whose samples are lost; else None."""
        return self._core.error

    def draws(self, i):
        """Return the random choices made for sample i, by node id; needs keep_draws=True."""
        return {int(node): drawn for node, drawn in json.loads(self._core.draws(i)).items()}

    def __repr__(self):
        return f"<drapps.Batch {self.number} of epoch {self.epoch}: {counted(self.samples, 'sample')}>"


def deliver(batch):
    """Return what a loader yields: (images, labels) if these are the fields, else a dict by field name."""
    fields = batch.fields
    if tuple(fields) == ("image", "label"):
        return fields["image"], fields["label"]
    return fields
