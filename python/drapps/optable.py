"""The ops in Python: the library's table, settings as JSON, and functions with real signatures.

The table in C is the only list of ops.  From it come the methods of Pipeline, the functions of drapps.ops and the
type stubs (scripts/make_stubs.py).
"""

import json
from enum import Enum

from drapps import _core

# The arguments of every op method of Pipeline that name the fields it works on.
FIELD_ARGUMENTS = "field=None, fields=None, out=None"


def load_table():
    """Return {name: row} of all ops, from dr_ops_json."""
    return {row["name"]: row for row in json.loads(_core.ops_json())}


TABLE = load_table()


class Op:
    """An op with its settings, as random_apply, random_choice and the nodes of a graph take it.

    >>> import drapps
    >>> drapps.ops.random_horizontal_flip(p=0.25)
    drapps.ops.random_horizontal_flip(p=0.25)
    """

    __slots__ = ("name", "params")

    def __init__(self, name, params):
        row = TABLE.get(name)
        if row is None:
            raise _core.NotFoundError(f"name must be the name of an op, got {name!r}; there are {', '.join(TABLE)}")
        self.name = name
        self.params = _differing(row, params)
        # The library checks types and ranges now, so that the traceback points to the mistake.
        _core.graph_from_json(graph_json([self.to_json()]))

    def to_json(self):
        """Return the op as part of a graph's JSON."""
        node = {"op": self.name}
        if self.params:
            node["params"] = self.params
        return node

    def __eq__(self, other):
        return isinstance(other, Op) and (self.name, self.params) == (other.name, other.params)

    def __hash__(self):
        return hash((self.name, json.dumps(self.params, sort_keys=True)))

    def __repr__(self):
        return call_text(self.to_json())


def call_text(value):
    """Return a setting as Python source, with nested ops as calls."""
    if isinstance(value, dict):
        arguments = ", ".join(f"{key}={call_text(entry)}" for key, entry in value.get("params", {}).items())
        return f"drapps.ops.{value['op']}({arguments})"
    if isinstance(value, list):
        return "[" + ", ".join(call_text(entry) for entry in value) + "]"
    return repr(value)


def graph_json(nodes):
    """Return the JSON text of a graph with these nodes."""
    return json.dumps({"version": 1, "nodes": nodes})


def _differing(row, params):
    """Return settings as JSON values, without those that equal their default."""
    defaults = {p["name"]: p.get("default") for p in row["params"]}
    plain = {key: to_plain(value) for key, value in params.items()}
    return {key: value for key, value in plain.items() if key not in defaults or value != defaults[key]}


def to_plain(value):
    """Return a setting as a JSON value.  Accepts tuples, NumPy numbers, dtypes and torchvision's enums."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Op):
        return value.to_json()
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, dict):
        return {key: to_plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist") and not isinstance(value, type):  # NumPy arrays and numbers, tensors
        return to_plain(value.tolist())
    if isinstance(value, (list, tuple, range)):
        return [to_plain(entry) for entry in value]
    return _dtype_name(value)


def _dtype_name(value):
    """Return "float32" for torch.float32, numpy.float32 and numpy.dtype("float32")."""
    module = getattr(value, "__module__", None) or type(value).__module__
    if type(value).__name__ == "dtype" and str(value).startswith("torch."):
        return str(value).removeprefix("torch.")
    if module.split(".")[0] == "numpy":
        return getattr(value, "name", None) or value.__name__
    raise _core.ArgumentError(f"a setting must be a number, a text, a list, a dtype or an op, got {value!r}")


# --- functions with signatures ---


def parameters(row):
    """Return the arguments of an op as source text: required ones first, then the rest in the table's order."""
    required = [p["name"] for p in row["params"] if p.get("required")]
    optional = [f"{p['name']}={_literal(p.get('default'))}" for p in row["params"] if not p.get("required")]
    return required + optional


def _literal(value):
    return repr(tuple(value)) if isinstance(value, list) else repr(value)


def describe(row):
    """Return the docstring of an op."""
    lines = [row["summary"][:1].upper() + row["summary"][1:] + "."]
    if row["params"]:
        lines.append("")
    for p in row["params"]:
        lines.append(f"{p['name']}: {p['doc']}{_allowed(p)}")
    if row["kinds"]:
        lines += ["", f"Acts on all fields of the kinds {', '.join(row['kinds'])}; fields= names others."]
    return "\n".join(lines)


def _allowed(p):
    if "choices" in p:
        return " (" + ", ".join(p["choices"]) + ")"
    if "min" in p and abs(p["min"]) < 1e6 and abs(p["max"]) < 1e6:
        return f" ({p['min']:g} to {p['max']:g})"
    return ""


def _source(row, method):
    given = ", ".join(f"'{p['name']}': {p['name']}" for p in row["params"])
    arguments = parameters(row)
    if method:
        arguments = ["self", *arguments, "*", FIELD_ARGUMENTS]
        body = f"self.op(Op('{row['name']}', {{{given}}}), field=field, fields=fields, out=out)"
    else:
        body = f"Op('{row['name']}', {{{given}}})"
    return f"def {row['name']}({', '.join(arguments)}):\n    return {body}\n"


def make_functions(module, method=False):
    """Return {name: function} for every op, compiled from the table so that help() and inspect see real signatures."""
    namespace = {"Op": Op, "__name__": module}
    exec("".join(_source(row, method) for row in TABLE.values()), namespace)
    functions = {name: namespace[name] for name in TABLE}
    for name, function in functions.items():
        function.__doc__ = describe(TABLE[name])
        if method:
            function.__qualname__ = f"Pipeline.{name}"
    return functions
