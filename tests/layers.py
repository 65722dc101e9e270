"""Checks the layers of the C library and of the Python package: each uses only itself and layers listed before it.

    python tests/layers.py [ROOT]

Prints each #include or import that goes the other way, or that names nothing in the tree, and then exits with 1.
"""

import ast
import re
import sys
from pathlib import Path

# The order of ARCHITECTURE.md.  A folder of src/ that is missing here is an error, not a free pass.
LAYERS = ["base", "trace", "shmpool", "data", "kernel", "source", "index", "codec", "format", "store", "op", "graph",
          "pack", "remote",
          "monitor", "rl", "sched", "exec", "sim", "serve", "loader"]

# The order of the Python package: (layer, its modules and folders).  A top-level module that is not listed is a helper.
# Only imports that run when a module is imported count: a function may import from a later layer when it is called.
HELPERS = "helpers"
PYTHON_LAYERS = [
    ("_core", ("_core",)),
    (HELPERS, ()),
    ("passes", ("passes",)),
    ("pipeline", ("arguments", "batch", "cached", "coco", "collate", "kept_prefix", "loader", "ops", "outcomes",
                  "output", "packing", "pipeline", "preview", "selection", "set_files", "stages")),
    ("procpool", ("procpool",)),
    ("chains", ("pyloader",)),
    ("torch", ("torch",)),
    ("sim", ("sim", "gym")),
    ("bench", ("bench",)),
    ("profile", ("profile",)),
    ("report and top", ("report", "top")),
    ("plan", ("plan",)),
    ("cli", ("cli",)),
]
FRAMEWORKS = ("torch", "torchvision", "tensorflow", "jax")
FRAMEWORK_FREE = ("_core", HELPERS, "passes", "pipeline", "chains")  # `import drapps` and native loaders need none

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def includes(path):
    """The (line number, name, is_quoted) of each #include in a file."""
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match[2], match[1] == '"'


def is_made(path):
    """Whether the build of its folder makes that file."""
    build = path.parent / "meson.build"
    return build.is_file() and f"output: '{path.name}'" in build.read_text(encoding="utf-8")


def resolve(root, path, name):
    """The file that a quoted include names, looked for as the build does: beside the file, src/, include/."""
    for folder in (path.parent, root / "src", root / "include"):
        target = folder / name
        if target.is_file() or is_made(target):
            return target.resolve()
    return None


def layer_of(root, path):
    """The folder of src/ that a file is in; None for what is outside src/."""
    inside = path.resolve().relative_to(root)
    return inside.parts[1] if inside.parts[0] == "src" and len(inside.parts) > 2 else None


def check_source(root, path):
    layer = layer_of(root, path)
    if layer not in LAYERS:
        yield f"src/{layer}: not in the list of layers"
        return
    for line, name, quoted in includes(path):
        if not quoted:
            continue
        target = resolve(root, path, name)
        where = f"{path.relative_to(root)}:{line}"
        if target is None:
            yield f"{where}: {name}: no such file in the tree"
            continue
        below = layer_of(root, target)
        if below in LAYERS and LAYERS.index(below) > LAYERS.index(layer):
            yield f"{where}: {layer} includes {name}, but {below} comes after {layer}"


def check_outside(root, path):
    """Public headers, tools, examples and the Python extension know the public headers alone."""
    for line, name, quoted in includes(path):
        target = resolve(root, path, name) if quoted else None
        if target is not None and layer_of(root, target):
            yield f"{path.relative_to(root)}:{line}: {name} is inside the library"


def python_layer(name):
    """The number of the layer that a module "drapps.a.b" is in."""
    first = name.split(".")[1]
    names = [layer for layer, _ in PYTHON_LAYERS]
    return next((k for k, (_, members) in enumerate(PYTHON_LAYERS) if first in members), names.index(HELPERS))


def imports(tree):
    """(line number, dotted name) of the imports that run when the module is imported."""
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            todo += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        todo += ast.iter_child_nodes(node)


def check_python(root, path):
    module = ".".join(path.relative_to(root / "python").with_suffix("").parts)
    if module == "drapps.__init__":
        return
    own = python_layer(module)
    names = [layer for layer, _ in PYTHON_LAYERS]
    for line, name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path.relative_to(root)}:{line}"
        if name.startswith("drapps.") and python_layer(name) > own:
            yield f"{where}: {names[own]} imports {name}, but {names[python_layer(name)]} comes after {names[own]}"
        elif name.split(".")[0] in FRAMEWORKS and names[own] in FRAMEWORK_FREE:
            yield f"{where}: {names[own]} imports {name}, but must not need a framework"


def findings(root):
    for path in sorted((root / "python" / "drapps").rglob("*.py")):
        yield from check_python(root, path)
    for path in sorted((root / "src").glob("*/**/*.[ch]")):
        yield from check_source(root, path)
    for folder in ("include", "tools", "examples", "python"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            yield from check_outside(root, path)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    found = list(dict.fromkeys(findings(root)))
    print("\n".join(found) or "layers: every #include and import goes up the list")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
