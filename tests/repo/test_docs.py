"""The documents are true as far as a program can tell: links lead somewhere, examples run, no path of one machine."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)")
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def ids(path):
    return str(path.relative_to(ROOT)) if isinstance(path, Path) else None


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page):
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def write_images(root):
    rng = np.random.default_rng(2)
    for i in range(12):
        folder = root / f"class{i % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (50 + i, 60, 3), dtype=np.uint8)).save(folder / f"{i}.jpg")


def examples(page):
    return EXAMPLE.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page, number", [(page, number) for page in ("README.md", "docs/cache.md", "docs/jpeg.md", "docs/python.md", "docs/watch.md")
                                          for number in range(len(examples(page)))])
def test_example_runs(page, number, tmp_path):
    """With the files and folders that the examples name, in a process of its own."""
    for name in ("photos", "imagenet/train"):
        write_images(tmp_path / name)
    shutil.copy(tmp_path / "photos" / "class0" / "0.jpg", tmp_path / "photo.jpg")
    example = examples(page)[number]
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
