"""Ops as a command line has them: "resize(512)", "center_crop(224)", "grayscale"."""

import ast

from drapps import _core
from drapps.argument_hints import did_you_mean
from drapps.optable import TABLE


def add_ops(pipe, texts):
    """The pipeline with these ops behind it.  Encoded images are decoded first where the ops do not begin with that."""
    calls = [parse_op(text) for text in texts]
    if calls and not calls[0][0].startswith("decode"):
        pipe = pipe.decode()
    for name, args, kwargs in calls:
        try:
            pipe = getattr(pipe, name)(*args, **kwargs)
        except TypeError as error:
            raise _core.ArgumentError(f"--op: {name}: {error}") from None
    return pipe


def parse_op(text):
    """(name, args, kwargs) of a call with literal arguments; a name alone is a call without any.

    >>> parse_op("resize((32, 48), interpolation='nearest')")
    ('resize', [(32, 48)], {'interpolation': 'nearest'})
    """
    wrong = _core.ArgumentError(f"--op must be an op with its arguments, as in 'resize(512)', got {text!r}")
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Name):
            call = ast.Call(call, [], [])
        name = call.func.id
        args = [ast.literal_eval(arg) for arg in call.args]
        kwargs = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, AttributeError):
        raise wrong from None
    if name not in TABLE or None in kwargs:
        if name in TABLE:
            raise wrong
        raise _core.ArgumentError(f"--op: no op {name!r}{did_you_mean(name, TABLE) or ';'} `drapps ops` lists them")
    return name, args, kwargs
