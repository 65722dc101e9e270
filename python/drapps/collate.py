"""The library's collate rules for NumPy arrays: batches of samples made by Python functions.

The rules are those of src/exec/collate.c, and a test compares the two.  C cannot be asked: it collates in place, in the
slots of a batch whose fields, types and layout the graph has planned before the first sample exists.  What a Python
function returns is known when it is there, in an array of its own, mostly in another process than the executor's.
"""

import numpy

from drapps import _core
from drapps.stages import INSTANCES, to_array

CHANNELS = (1, 2, 3, 4)


def check_rules(names, rules):
    """Raise for a rule of a field that is not delivered: it would have no effect."""
    for name in rules:
        if name not in names:
            known = ", ".join(names)
            raise _core.ArgumentError(
                f'collate: field "{name}" is not delivered, only {known}: add it to outputs, or leave its rule out'
            )


def collate(samples, names, rules, layout):
    """Return {field: array or list} from the fields of samples, by the rules of dr_loader_options.collate."""
    fields = {}
    check_rules(names, rules)
    for name in names:
        values = [_value(sample, name, layout) for sample in samples]
        listed = isinstance(values[0], (str, bytes)) or samples[0].kinds.get(name) in INSTANCES
        rule = rules.get(name) or ("list" if listed else "stack")
        fields.update(RULES[rule](name, values))
    return fields


def _value(sample, name, layout):
    if name not in sample.fields:
        raise _core.NotFoundError(f'a sample has no field "{name}"; it has {", ".join(sample.fields)}')
    value = sample.fields[name]
    if isinstance(value, (str, bytes)):
        return value
    array = to_array(name, value)
    is_image = sample.kinds.get(name) == "image" and array.ndim == 3 and array.shape[-1] in CHANNELS
    return numpy.moveaxis(array, -1, 0) if is_image and layout == "NCHW" else array


def _stack(name, values):
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        text = " and ".join(str(shape) for shape in sorted(shapes)[:2])
        raise _core.ArgumentError(
            f'field "{name}": samples have the shapes {text}; resize them, or collate={{"{name}": "pad"}} or "list"'
        )
    return {name: numpy.stack(values)}


def _pad(name, values):
    extents = numpy.array([value.shape for value in values], dtype=numpy.int64)
    out = numpy.zeros((len(values), *extents.max(axis=0)), dtype=values[0].dtype)
    for i, value in enumerate(values):
        out[(i, *(slice(0, n) for n in value.shape))] = value
    return {name: out, f"{name}_sizes": extents}


def _ragged(name, values):
    lengths = [0] + [len(value) for value in values]
    return {name: numpy.concatenate(values), f"{name}_offsets": numpy.cumsum(lengths, dtype=numpy.int64)}


def _list(name, values):
    return {name: values}


RULES = {"stack": _stack, "pad": _pad, "ragged": _ragged, "list": _list}
