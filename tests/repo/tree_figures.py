"""Prints a Markdown table of figures of one or more trees of drapps, to compare them.

    python tests/repo/tree_figures.py TREE ...       for example: tree_figures.py ../drapps-before .

Files, lines and functions are counted from the files of git.  The last rows count the Python files of drapps that take
part in the first batch of three loaders.  They need TREE/.venv with drapps, torch and torchvision, and are "-" without.
"""

import ast
import re
import statistics
import subprocess
import sys
from pathlib import Path

# Runs in the environment of a tree: prints the files of drapps that a loader's first batch calls, in all its processes.
TRACED = r"""
import os, sys, tempfile, threading
import drapps, torch, numpy
from PIL import Image
from drapps.bench.standins import import_torchvision
import_torchvision()
from torchvision import datasets, transforms

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.full((3,), float(i))

def native():
    return drapps.read(folder).decode().resize((8, 8)).loader(batch_size=4, workers=1)
def lowered():
    chain = transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()])
    return drapps.DataLoader(datasets.ImageFolder(folder, chain), batch_size=4, num_workers=1)
def python():
    return drapps.DataLoader(Numbers(), batch_size=4, num_workers=1)

package, log, seen = os.path.dirname(drapps.__file__) + os.sep, tempfile.TemporaryFile(), set()
def note(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(package) and frame.f_code.co_flags & 1 and name not in seen:  # 1: a function
        seen.add(name)
        os.write(log.fileno(), (name + "\n").encode())  # one write: processes share the file and its position

with tempfile.TemporaryDirectory() as folder:
    os.mkdir(folder + "/class")
    for i in range(8):
        pixels = numpy.random.default_rng(i).integers(0, 255, (16, 16, 3), dtype=numpy.uint8)
        Image.fromarray(pixels).save(f"{folder}/class/{i}.jpg")
    make = {"native": native, "lowered": lowered, "python": python}[sys.argv[1]]
    next(iter(make()))  # imports what it needs
    threading.setprofile(note)
    sys.setprofile(note)
    next(iter(make()))
    sys.setprofile(None)
    log.seek(0)
    print(len(set(log.read().split())), flush=True)
    os._exit(0)
"""


def tracked(root, *patterns):
    """The files of git that match, as paths."""
    out = subprocess.run(["git", "ls-files", *patterns], cwd=root, capture_output=True, text=True, check=True).stdout
    return [path for line in out.splitlines() if (path := root / line).is_file()]


def lines_of(path):
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def python_functions(path):
    """Lines of the body of each function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.end_lineno - node.body[0].lineno + 1 for node in ast.walk(tree) if isinstance(node, kinds)]


def c_functions(path):
    """Lines between the braces of each function: a brace alone in the first column ends what one began."""
    found, start = [], None
    for number, line in enumerate(lines_of(path)):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            found.append(number - start - 1)
            start = None
    return found


def middle(values):
    """Median and 90th percentile."""
    ordered = sorted(values)
    return f"{statistics.median(ordered):.0f} / {ordered[int(0.9 * (len(ordered) - 1))]}" if ordered else "-"


def comment_share(paths):
    """Share of the lines that are not empty and belong to a comment, whole or in part."""
    commented = total = 0
    for path in paths:
        inside = False
        for line in filter(str.strip, lines_of(path)):
            total += 1
            commented += inside or "/*" in line or "//" in line
            inside = "*/" not in line.rpartition("/*")[2] if "/*" in line else inside and "*/" not in line
    return f"{commented / total:.0%}" if total else "-"


def iterator_attributes(root):
    """{class: attributes that it and its bases assign to self} of the iterators of drapps.torch."""
    classes = {}
    for path in tracked(root, "python/drapps/torch/*iter*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                names = set(re.findall(r"\bself\.(\w+)(?:, self\.\w+)* (?:=|\+=) ", ast.unparse(node)))
                stores = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                          and isinstance(n.value, ast.Name) and n.value.id == "self"}
                classes[node.name] = (names | stores, [base.id for base in node.bases if isinstance(base, ast.Name)])

    def of(name):
        own, bases = classes.get(name, (set(), []))
        return own.union(*map(of, bases))

    return {name: len(of(name)) for name in classes if name.endswith("Iter")}


def traced_files(root, loader):
    """Files of drapps that the first batch of a loader calls."""
    interpreter = root / ".venv" / "bin" / "python"
    if not interpreter.exists():
        return "-"
    done = subprocess.run([interpreter, "-c", TRACED, loader], capture_output=True, text=True, timeout=300)
    return done.stdout.strip() or "-"


def by_folder(root):
    """{folder: (files, lines)}, one entry for each folder of src/ and of the Python package."""
    counts = {}
    for path in tracked(root, "*.c", "*.h", "*.py", "*.md", "*.js", "*.css"):
        parts = path.relative_to(root).parts[:-1]
        depth = {"src": 2, "python": 3, "tests": 2}.get(parts[0] if parts else "", 1)
        files, lines = counts.get(name := "/".join(parts[:depth]) or ".", (0, 0))
        counts[name] = files + 1, lines + len(lines_of(path))
    return counts


def figures(root):
    """{row: text} of one tree."""
    rows = {f"`{name}`: files, lines": f"{n}, {lines}" for name, (n, lines) in sorted(by_folder(root).items())}
    for what, pattern, functions in (("C", "src/*.c", c_functions), ("Python", "python/drapps/*.py", python_functions)):
        paths = tracked(root, pattern)
        rows[f"{what} files, lines: median / p90"] = middle([len(lines_of(path)) for path in paths])
        rows[f"{what} functions, lines of the body: median / p90"] = middle([n for path in paths for n in functions(path)])
    rows["comment lines in public headers"] = comment_share(tracked(root, "include/*.h"))
    attributes = iterator_attributes(root)
    rows["attributes of the iterators of drapps.torch"] = ", ".join(f"{k} {v}" for k, v in sorted(attributes.items()))
    for loader, words in (("native", "a native loader"), ("lowered", "a lowered DataLoader"),
                          ("python", "a DataLoader over a Python data set")):
        rows[f"Python files called for the first batch of {words}"] = traced_files(root, loader)
    return rows


def main():
    trees = [Path(word).resolve() for word in sys.argv[1:] or ["."]]
    found = [figures(tree) for tree in trees]
    print("| figure | " + " | ".join(sys.argv[1:] or ["."]) + " |\n|---|" + "---|" * len(found))
    for row in dict.fromkeys(name for tree in found for name in tree):
        print(f"| {row} | " + " | ".join(tree.get(row, "") for tree in found) + " |")


if __name__ == "__main__":
    main()
