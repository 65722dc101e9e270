"""Values of a state, checked one by one: a state comes from a file, and one that is wrong must not be half believed.

Whole numbers are ints.  A float is an error also where it is whole: it tells of a format that changes types, and what
else it has changed is not known.
"""

from drapps import _core

INT64 = 2**63 - 1  # no count, and nothing that is drawn as a seed, is larger


def wrong(name, must, got):
    """Raises: the field, what it must be and what it is."""
    text = repr(got)
    raise _core.ArgumentError(f"state: {name} must be {must}, got {text if len(text) <= 100 else text[:100] + '...'}")


def whole(state, name, least=0, optional=False, inside=""):
    """An int, not below `least` (None: any), that 64 bits hold."""
    value = get(state, name, inside)
    if optional and value is None:
        return None
    if type(value) is int and abs(value) > INT64:
        wrong(inside + name, f"at most {INT64}", value)
    if type(value) is not int or (least is not None and value < least):
        kind = {None: "an int", 0: "a non-negative int"}.get(least, f"an int from {least} on")
        wrong(inside + name, kind + " or None" * optional, value)
    return value


def flag(state, name, inside=""):
    """True or False."""
    value = get(state, name, inside)
    if type(value) is not bool:
        wrong(inside + name, "True or False", value)
    return value


def mapping(state, name, inside=""):
    """A dict."""
    value = get(state, name, inside)
    if not isinstance(value, dict):
        wrong(inside + name, "a dict", value)
    return value


def wholes(state, name, inside="", optional=False):
    """A list or tuple of non-negative ints."""
    value = get(state, name, inside)
    if optional and value is None:
        return None
    if not is_wholes(value):
        wrong(inside + name, "a list of non-negative ints" + " or None" * optional, value)
    return value


def is_wholes(value):
    """A list or tuple of non-negative ints?"""
    return isinstance(value, (list, tuple)) and all(type(item) is int and 0 <= item <= INT64 for item in value)


def get(state, name, inside):
    if name not in state:
        raise _core.ArgumentError(f"state: {inside}{name} is missing")
    return state[name]
