"""What does a user's function do?  Two answers that its bytecode proves; whatever it does not prove is not believed.

    bindings(function, template)   it does exactly what a template does, whose names in capitals may be any
    is_confined(function, ...)     it can reach nothing but some modules, and changes nothing outside of itself

A template is compiled by the Python that runs, so that no version's bytecode has to be known here.  Neither source
files, which may have changed since, nor names of functions are asked.
"""

import dis
import inspect
import types

# What a code object may do beside its instructions: take any number of arguments, be a generator or a coroutine.
SHAPE = (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
         | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR)  # fmt: skip
NAMED = {"LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL"}
CELLS = {"LOAD_DEREF"}


def template(text):
    """A function of its parameters, a colon and its body, in as many lines as it takes."""
    head, _, body = text.partition(":")
    scope = {}
    exec(f"def made({head}):{body}", scope)
    return scope["made"]


def closure_template(cells, text):
    """The same with some of its names in an enclosing function."""
    head, _, body = text.partition(":")
    scope = {}
    exec(f"def outer({', '.join(cells)}):\n def made({head}):{body}\n return made\n", scope)
    return scope["outer"](*[None] * len(cells))


def bindings(function, wanted):
    """{name in the template: name in the function} where the function does what the template does; else None."""
    if type(function) is not types.FunctionType:
        return None
    mine, theirs = function.__code__, wanted.__code__
    if _shape(mine) != _shape(theirs):
        return None
    found = {}
    for ours, other in zip(_steps(mine), _steps(theirs), strict=False):
        if ours[:2] != other[:2] or not _bind(found, other[2], ours[2]):
            return None
    return found if len(_steps(mine)) == len(_steps(theirs)) else None


def _shape(code):
    return (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & SHAPE, code.co_nlocals,
            code.co_cellvars, len(code.co_freevars), code.co_exceptiontable)  # fmt: skip


def _steps(code):
    """(what is done, on what, with which name) of each instruction."""
    return [_step(one) for one in dis.get_instructions(code) if one.opname != "NOP"]


def _step(one):
    if one.opname in NAMED:
        return one.opname, one.argrepr.replace(one.argval, "", 1), one.argval
    if one.opname in CELLS:
        return one.opname, None, one.argval
    if one.opname in ("LOAD_CONST", "RETURN_CONST"):
        return one.opname, (type(one.argval), repr(one.argval)), None
    return one.opname, one.arg, None


def _bind(found, wanted, name):
    """Whether a name stands where the template has `wanted`; one in capitals may be any, but the same everywhere."""
    if wanted is None or not wanted.isupper():
        return wanted == name
    return found.setdefault(wanted, name) == name


def value_of(function, name):
    """What a name that is no local one means in a function now; LookupError: nothing."""
    code = function.__code__
    if name in code.co_freevars:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            raise LookupError(name) from None
    if name in function.__globals__:
        return function.__globals__[name]
    return function.__builtins__[name]  # which its globals may have replaced


# --- what a function can reach ---

def is_confined(function, reaches, attributes):
    """Whether all that a function can reach is permitted, and it sets no attribute or name but its local ones.

    reaches: of a value that a global name or a name of an enclosing function stands for: is it permitted?
    attributes: of the name of an attribute: may it be asked for, of whatever object?
    """
    if type(function) is not types.FunctionType:
        return False
    code = function.__code__
    if code.co_flags & SHAPE or any(isinstance(const, types.CodeType) for const in code.co_consts):
        return False
    return all(_is_permitted(one, function, reaches, attributes) for one in dis.get_instructions(code))


def _is_permitted(one, function, reaches, attributes):
    if one.opname == "LOAD_GLOBAL" or one.opname in CELLS:
        try:
            return reaches(value_of(function, one.argval))
        except LookupError:
            return False
    if one.opcode in dis.hasname:  # all others set, delete or import something, or are not known
        return one.opname in NAMED and attributes(one.argval)
    return one.opcode not in dis.hasfree
