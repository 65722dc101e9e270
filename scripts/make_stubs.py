#!/usr/bin/env python3
"""Writes python/drapps/pipeline.pyi and ops.pyi from the op table, so that editors know every op.

    scripts/make_stubs.py            write them (drapps must be installed)
    scripts/make_stubs.py --check    status 1 if they are not up to date
"""

import ast
import pathlib
import sys

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python" / "drapps"

HEAD = '"""Made by scripts/make_stubs.py from the op table and {name}.py: do not edit."""\n\n'
NAMES = "str | Sequence[str] | None"
TYPES = {
    "real": "float",
    "int": "int",
    "bool": "bool",
    "text": "str",
    "reals": "float | Sequence[float] | None",
    "ints": "int | Sequence[int] | None",
    "ops": "Sequence[Op]",
}


def type_of(p):
    """The Python type of a parameter of the table."""
    if p["type"] == "enum":
        return "Literal[" + ", ".join(repr(choice) for choice in p["choices"]) + "]"
    return TYPES[p["type"]]


def arguments(row):
    """The arguments of an op with types, what is required first."""
    required = [f"{p['name']}: {type_of(p)}" for p in row["params"] if p.get("required")]
    return required + [f"{p['name']}: {type_of(p)} = ..." for p in row["params"] if not p.get("required")]


def function(name, args, result, doc, indent=""):
    """A stub with its docstring."""
    lines = [f"{indent}def {name}({', '.join(args)}) -> {result}:"]
    body = doc.split("\n")
    if len(body) == 1:
        lines.append(f'{indent}    """{body[0]}"""')
    else:
        lines += [f'{indent}    """{body[0]}']
        lines += [f"{indent}    {line}".rstrip() for line in body[1:]]
        lines += [f'{indent}    """']
    return "\n".join(lines) + "\n"


def method(row, describe):
    """The method of Pipeline for an op."""
    fields = ["*", f"field: {NAMES} = ...", f"fields: {NAMES} = ...", f"out: {NAMES} = ..."]
    return function(row["name"], ["self", *arguments(row), *fields], "Pipeline", describe(row), "    ")


def ops_stub(table, describe):
    """ops.pyi."""
    head = HEAD.format(name="ops") + "from collections.abc import Sequence\nfrom typing import Literal\n\n"
    head += "from drapps.optable import Op\n\n"
    return head + "\n".join(function(row["name"], arguments(row), "Op", describe(row)) for row in table.values())


def pipeline_stub(table, describe):
    """pipeline.pyi: scripts/pipeline_frame.pyi with a method for each op."""
    frame = (pathlib.Path(__file__).parent / "pipeline_frame.pyi").read_text()
    return frame.replace("    # OPS\n", "\n".join(method(row, describe) for row in table.values()))


def stubs():
    """{path: text} of every stub that is made."""
    from drapps.optable import TABLE, describe

    texts = {PACKAGE / "ops.pyi": ops_stub(TABLE, describe), PACKAGE / "pipeline.pyi": pipeline_stub(TABLE, describe)}
    for path, text in texts.items():
        ast.parse(text, str(path))
    return texts


def main():
    stale = [path for path, text in stubs().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.name} is not up to date: run scripts/make_stubs.py", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stubs().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
