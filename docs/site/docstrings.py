"""Docstrings and stubs as Sphinx wants them: plain text becomes reStructuredText, signatures get the stubs' types."""

import ast
import inspect
import re
from pathlib import Path

import drapps
import rst

ARGUMENT = re.compile(r"^([a-z_]\w*(?: \(or \w+\))?(?:, [a-z_]\w*(?: \(or \w+\))?)*): +(.*)$")


def to_rst(lines):
    """A docstring: paragraphs, `name: meaning` lists, examples, indented code."""
    out = []
    for is_code, block in rst.paragraphs(lines, 4):
        if block[0].lstrip().startswith(">>>"):
            out += [".. code-block:: pycon", "", *rst.indent(rst.dedent(_without_options(block)), 3), ""]
        elif is_code:
            out += [".. code-block:: python", "", *rst.indent(rst.dedent(block), 3), ""]
        else:
            out += _prose(block)
    return out


def _without_options(block):
    return [re.sub(r"\s*# doctest: .*$", "", line) for line in block]


def _prose(block):
    items = []
    for line in block:
        if found := ARGUMENT.match(line):
            items.append([found.group(1), found.group(2)])
        elif items and (line.startswith(" ") or items[-1][0]) and line.startswith(" "):
            items[-1][1] += " " + line.strip()
        elif items and items[-1][0] is None:
            items[-1][1] += " " + line.strip()
        else:
            items.append([None, line.strip()])
    out = []
    for name, text in items:
        if name is None:
            out += ["", _linked(rst.escape(text)), ""]
        else:
            shown = re.sub(r"(\w+)", r"**\1**", name.replace("(or ", "or ").replace(")", "")).replace("**or**", "or")
            out.append(f"* {shown}: {_linked(rst.escape(text))}")
    return [*out, ""]


def _linked(text):
    return re.sub(r"\bdocs/([\w/-]+)\.md\b", r":doc:`/\1`", text)


# --- signatures ---


def _read_stubs():
    """{qualified name: ast of the function} of all stub files of the package."""
    found = {}
    root = Path(drapps.__file__).parent
    for path in root.rglob("*.pyi"):
        module = ".".join(["drapps", *path.relative_to(root).with_suffix("").parts])
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found[f"{module}.{node.name}"] = node
            elif isinstance(node, ast.ClassDef):
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        found[f"{module}.{node.name}.{member.name}"] = member
    return found


STUBS = _read_stubs()


def signature(obj):
    """(arguments, result) of a function with the types of its stub and its true defaults; None: leave it."""
    target = obj.__init__ if inspect.isclass(obj) and not issubclass(obj, tuple) else obj
    target = inspect.unwrap(target)
    name = f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', '')}"
    node = STUBS.get(name)
    try:
        own = inspect.signature(target)
    except (TypeError, ValueError):
        return None
    types = {}
    if node is not None:
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        types = {a.arg: a.annotation for a in every if a is not None and a.annotation is not None}
    shown = [p.replace(annotation=_Text(ast.unparse(types[p.name])) if p.name in types else p.annotation)
             for p in own.parameters.values() if p.name not in ("self", "cls")]  # fmt: skip
    shown = [p.replace(default=_Text("not given")) if type(p.default).__name__ == "Count" else p for p in shown]
    text = str(own.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    result = (
        ast.unparse(node.returns)
        if node is not None and node.returns is not None and not inspect.isclass(obj)
        else None
    )
    return text, result


class _Text(str):
    """A text that is shown as it is."""

    def __repr__(self):
        return str(self)
