"""Prints a Markdown table of figures of one or more trees of drapps, to compare them.

    python tests/repo/tree_figures.py TREE ...       for example: tree_figures.py ../drapps-before .

Files, lines and functions are counted from the files of git.  The last rows count the Python files of drapps of which
functions are called, in all processes: for the first batch of three loaders, from their constructors on, and for later
batches, when workers and all decisions are there.  They need TREE/.venv with drapps, torch and torchvision, and are "-"
without.
"""

import ast
import statistics
import subprocess
import sys
from pathlib import Path

# Runs in the environment of a tree with the name of a loader and a number of batches: prints how many files of drapps
# the loader's first batch calls in all its processes, or as many batches after the first ones.
TRACED = r"""
import mmap, os, sys, tempfile, threading
import drapps, torch, numpy
from PIL import Image
from drapps.bench.standins import import_torchvision
import_torchvision()
from torchvision import datasets, transforms

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 96
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
first_batches, counts = int(sys.argv[2]), mmap.mmap(-1, 1)  # shared: whether calls count now
def note(frame, event, _):
    name = frame.f_code.co_filename
    if not counts[0] or event != "call" or name in seen:
        return
    if name.startswith(package) and frame.f_code.co_flags & 1:  # 1: a function
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
    counts[0] = first_batches == 0
    batches = iter(make())
    for _ in range(first_batches):
        next(batches)
    counts[0] = 1
    for _ in range(max(1, first_batches)):
        next(batches)
    sys.setprofile(None)
    log.seek(0)
    print(len(set(log.read().split())), flush=True)
    os._exit(0)
"""

# What the iterator of a pass in worker processes owns.
PARTS = ("python/drapps/torch/*_collector.py", "python/drapps/procpool/prefetch_window.py", "python/drapps/passes/*.py")


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


def attributes(root, *patterns, of=lambda name: True):
    """{class: attributes that it and its bases assign to self} of the classes of some files."""
    classes = {}
    for path in tracked(root, *patterns):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                stores = {n.attr for n in ast.walk(node)
                          if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                          and isinstance(n.value, ast.Name) and n.value.id == "self"}
                classes[node.name] = (stores, [base.id for base in node.bases if isinstance(base, ast.Name)])

    def all_of(name):
        own, bases = classes.get(name, (set(), []))
        return own.union(*map(all_of, bases))

    return {name: n for name in classes if of(name) and (n := len(all_of(name)))}


def traced_files(root, loader, first_batches=0):
    """Files of drapps that the first batch of a loader calls, or as many batches after the first ones."""
    interpreter = root / ".venv" / "bin" / "python"
    if not interpreter.exists():
        return "-"
    command = [interpreter, "-c", TRACED, loader, str(first_batches)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.stdout.strip() or "-"


def in_words(counts):
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items()))


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
        rows[f"{what} functions, lines of the body: median / p90"] = middle(
            [n for path in paths for n in functions(path)]
        )
    rows["comment lines in public headers"] = comment_share(tracked(root, "include/*.h"))
    iterators = attributes(root, "python/drapps/torch/*iter*.py", of=lambda name: name.endswith("Iter"))
    rows["attributes of the iterators of drapps.torch"] = in_words(iterators)
    rows["attributes of the parts of a pass in worker processes"] = in_words(attributes(root, *PARTS))
    for loader, words in (("native", "a native loader"), ("lowered", "a lowered DataLoader"),
                          ("python", "a DataLoader over a Python data set")):
        rows[f"Python files called for the first batch of {words}"] = traced_files(root, loader)
    later = traced_files(root, "python", 8)
    rows["Python files called for later batches of a DataLoader over a Python data set"] = later
    return rows


def main():
    trees = [Path(word).resolve() for word in sys.argv[1:] or ["."]]
    found = [figures(tree) for tree in trees]
    print("| figure | " + " | ".join(sys.argv[1:] or ["."]) + " |\n|---|" + "---|" * len(found))
    for row in dict.fromkeys(name for tree in found for name in tree):
        print(f"| {row} | " + " | ".join(tree.get(row, "") for tree in found) + " |")


if __name__ == "__main__":
    main()
