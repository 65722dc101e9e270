"""Checks that data goes down the list of folders: a folder includes only itself and folders listed above it.

    python tests/layers.py [ROOT]

Prints each #include that goes the other way, or that names nothing in the tree, and then exits with 1.
"""

import re
import sys
from pathlib import Path

# The order of ARCHITECTURE.md.  A folder of src/ that is missing here is an error, not a free pass.
LAYERS = ["base", "trace", "shmpool", "data", "kernel", "source", "index", "codec", "format", "store", "op", "graph", "remote",
          "monitor", "rl", "sched", "exec", "sim", "serve", "loader"]

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


def findings(root):
    for path in sorted((root / "src").glob("*/**/*.[ch]")):
        yield from check_source(root, path)
    for folder in ("include", "tools", "examples", "python"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            yield from check_outside(root, path)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    found = list(dict.fromkeys(findings(root)))
    print("\n".join(found) or "layers: every #include goes up the list")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
