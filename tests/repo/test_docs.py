"""The documents are true as far as a program can tell: links lead somewhere, examples run, what programs read from the
environment is told, no path of one machine."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import drapps
import numpy as np
import pytest
from cocosets import make_coco
from PIL import Image

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
EXAMPLE = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?((?:[A-Z_]+=\S+ )*drapps [a-z].*)$", re.MULTILINE)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

# What the reader of a page has by then: names that its examples use and do not make.
TORCH = """
import torch, vision
vision.import_torchvision()
from torch.utils.data import TensorDataset
from drapps import DataLoader
dataset = TensorDataset(torch.arange(200))
model = torch.nn.Linear(1, 1)
loader = DataLoader(dataset, 64)
train = save = lambda *things: None
"""
PIPE = """
import drapps
pipe = drapps.read("photos").decode().resize((32, 32))
"""
TRACE = PIPE + """
seed, epoch = 0, 0
with pipe.loader(batch_size=256, trace="run.drtrace", trace_spans=float("inf")) as loader:
    list(loader)
"""
FORMATS = PIPE + """
import pathlib, tempfile
from benchmarks import volumes
other = pipe
cases = volumes.write_cases(pathlib.Path(tempfile.mkdtemp(dir=".")), [(20, 33, 40), (9, 50, 31)], (2.5, 0.9, 1.1))
"""
DETECTION = """
import vision
vision.import_torchvision()
from torchvision import datasets
from torchvision.transforms import v2
from drapps import DataLoader
root, annotations = "images", "instances.json"
"""
VISION = """
import vision
vision.import_torchvision()
"""
GIVEN = {"docs/cache.md": PIPE, "docs/formats.md": FORMATS, "docs/pytorch.md": TORCH, "docs/scheduler.md": PIPE,
         "docs/trace.md": TRACE, "docs/profile.md": TRACE, "docs/parity.md": DETECTION,
         "docs/tutorials/drop-in.md": VISION,
         "docs/migration.md": VISION}  # fmt: skip


def ids(path):
    return str(path.relative_to(ROOT)) if isinstance(path, Path) else None


def anchors(page):
    """What a link into the page may name: its headings, as GitHub writes them."""
    seen = {}
    for heading in HEADING.findall(re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{seen[name]}" if seen[name] else name


def leads_somewhere(page, link):
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page):
    """Files, folders and headings of this tree; addresses elsewhere are not looked at."""
    links = [link for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))) if "://" not in link]
    assert [link for link in links if not leads_somewhere(page, link)] == []


def test_anchors(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n## A [b](x.md#y) c\n```\n# no\n```\n### A b-c_d?\n")
    assert list(anchors(page)) == ["a-b-c", "a-b-c-1", "a-b-c_d"]
    assert leads_somewhere(page, "#a-b-c-1") and leads_somewhere(page, "page.md#a-b-c_d")
    assert not leads_somewhere(page, "#no") and not leads_somewhere(page, "other.md")


def write_images(root):
    rng = np.random.default_rng(2)
    for i in range(12):
        folder = root / f"class{i % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (50 + i, 60, 3), dtype=np.uint8)).save(folder / f"{i}.jpg")


def is_tutorial(page):
    """Whether the page is to be followed from its beginning to its end."""
    return page.parent.name == "tutorials" or page.stem in ("quickstart", "migration")


def examples(page):
    """[(language, text)] of what can be run: Python everywhere, drapps' commands in tutorials."""
    found = EXAMPLE.findall(page.read_text(encoding="utf-8"))
    return [(language, text) for language, text in found if language == "python" or is_tutorial(page)]


# In one process, since starting one takes longer.  Examples of a tutorial build on each other; elsewhere each is run by
# itself, so that it has all that it needs.
RUN = """
import json, subprocess, sys
given, examples, together = json.load(sys.stdin)
names = {}
for i, (language, example) in enumerate(examples):
    print(f"example {i}", file=sys.stderr)
    if not together or i == 0:
        names = {"__name__": "__main__"}
        exec(given, names)
    if language == "sh":
        subprocess.run(example.replace("drapps ", f"{sys.executable} -m drapps.cli "), shell=True, check=True)
    else:
        exec(compile(example, f"example {i}", "exec"), names)
"""


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=ids)
def test_examples_run(page, tmp_path):
    """With the files and folders that the examples name, and with what the page has made before."""
    for name in ("photos", "imagenet/train"):
        write_images(tmp_path / name)
    (tmp_path / "images").mkdir()
    shutil.copy(tmp_path / "photos" / "class0" / "0.jpg", tmp_path / "photo.jpg")
    make_coco(tmp_path / "images").rename(tmp_path / "instances.json")
    given = GIVEN.get(ids(page), ""), examples(page), is_tutorial(page)
    done = subprocess.run([sys.executable, "-c", RUN], input=json.dumps(given), cwd=tmp_path, capture_output=True,
                          text=True,
                          env={**os.environ, "PYTHONPATH": f"{ROOT / 'examples'}:{ROOT}",
                               "XDG_CACHE_HOME": str(tmp_path / "cache")})  # fmt: skip
    assert done.returncode == 0, done.stderr


def commands():
    """{(command, subcommand): [line, ...]} of the lines of all pages that call drapps."""
    found = {}
    for page in PAGES:
        for language, block in FENCED.findall(page.read_text(encoding="utf-8")):
            for line in COMMAND.findall(block.replace("\\\n", " ")) if language in ("", "sh", "console") else ():
                words = line.split("#")[0].split(" | ")[0].split()
                words = words[words.index("drapps") + 1 :]
                nested = words[0] in ("bench", "experiment", "scheduler", "trace", "burn")
                part = words[1] if nested and words[1:] and words[1].isalpha() else ""
                found.setdefault((words[0], part), []).append((ids(page), line, words))
    return found


@pytest.mark.parametrize("name", sorted(commands()), ids="-".join)
def test_options_of_commands_exist(name):
    """Each option that a page gives to a command is in the command's help."""
    command = [sys.executable, "-m", "drapps.cli", *filter(None, name), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", done.stdout)) | {"--", "--help"}
    wrong = [(page, line) for page, line, words in commands()[name]
             for word in words[: words.index("--") if "--" in words else None]
             if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known]  # fmt: skip
    assert wrong == []


def test_what_is_read_from_the_environment_is_told():
    """Every variable that a program, a script or a test asks for stands in some document."""
    asked = re.compile(r"""(?:getenv\(|environ\S*[\[(]|setting\()\s*["'](DRAPPS_\w+|STRESS_\w+)""")
    files = [path for folder in ("src", "python", "tests", "scripts", "examples", "tools", "bench")
             for path in (ROOT / folder).rglob("*") if path.suffix in (".c", ".h", ".py", ".sh")]
    found = {name for path in files for name in asked.findall(path.read_text(encoding="utf-8"))}
    assert {"DRAPPS_IMAGE_DIRS", "DRAPPS_POLICY", "DRAPPS_CPU", "DRAPPS_TEST_SEED"} <= found
    told = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert sorted(name for name in found if name not in told) == []


def test_no_path_of_one_machine():
    if not shutil.which("git"):
        pytest.skip("no git here")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    private = re.compile(rb"(?<![\w.])/(?:home|root|Users|work)/\w")
    found = [name for name in tracked.stdout.split("\0")
             if name and (ROOT / name).is_file() and private.search((ROOT / name).read_bytes())]
    assert found == []


def test_every_option_is_on_the_page_of_options():
    """Arguments of both loaders, fields of the options in C, and variables that the library reads."""
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    names = set()
    for function in (drapps.Pipeline.loader, drapps.DataLoader.__init__):
        names |= set(inspect.signature(function).parameters) - {"self", "dataset"}
    header = (ROOT / "include" / "drapps" / "loader.h").read_text(encoding="utf-8")
    struct = re.sub(
        r"/\*.*?\*/", "", header[: header.index("} dr_loader_options;")].rpartition("{")[2], flags=re.DOTALL
    )
    names |= {name for line in struct.split(";") for name in re.findall(r"(\w+)\s*(?:,|$)", line.strip())} - {"size"}
    read = re.compile(r"""(?:getenv\(|environ\S*[\[(])\s*["'](DRAPPS_\w+)""")
    for folder in ("src", "python"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".c", ".py"):
                names |= set(read.findall(path.read_text(encoding="utf-8")))
    told = {word for text in re.findall(r"`([^`]+)`", page) for word in re.findall(r"\w+", text)}
    assert sorted(names - told - {"DRAPPS_STALL"}) == []
