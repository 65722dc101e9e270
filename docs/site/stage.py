"""Makes the source folder of the site: pages of docs/, files of the repository that they link to, generated pages.

The pages are plain Markdown that GitHub shows, too.  Here their links to files outside of docs/ become links to pages
of the site, and the list of contents below becomes the navigation.
"""

import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(__file__).resolve().parent

NAVIGATION = {
    "Getting started": ["quickstart", "migration"],
    "Tutorials": ["tutorials/image-folder", "tutorials/drop-in", "tutorials/python-datasets", "tutorials/detection",
                  "tutorials/volumes", "tutorials/resume-and-ranks"],
    "Guides": ["pytorch", "python", "formats", "shards", "remote", "serve", "offload", "cache", "ranges", "codecs",
               "scheduler", "tuning", "troubleshooting", "c"],
    "Tools": ["plan", "profile", "watch", "report", "trace"],
    "Reference": ["options", "stats", "reference/python", "reference/ops", "reference/cli", "reference/c/index",
                  "monitor", "jpeg", "parity"],
    "Evidence": ["benchmarks", "programs", "notes/index", "fuzzing"],
    "Project": ["project/changelog", "project/contributing", "project/architecture", "project/style",
                "project/security"],
}  # fmt: skip
BELOW = {
    "benchmarks": ["benchmarks/method", "benchmarks/images", "benchmarks/jpeg", "benchmarks/python-datasets",
                   "benchmarks/unet3d", "benchmarks/storage", "benchmarks/adaptation", "benchmarks/monitor",
                   "benchmarks/profile"],
}  # fmt: skip
PROJECT = {"CHANGELOG.md": "project/changelog.md", "CONTRIBUTING.md": "project/contributing.md",
           "ARCHITECTURE.md": "project/architecture.md", "STYLE.md": "project/style.md",
           "SECURITY.md": "project/security.md", "README.md": "index.md", "docs/README.md": "index.md"}  # fmt: skip
FOLDERS = {"include/drapps": "reference/c/index.rst", "examples": "source/examples.md", "docs": "index.md",
           "docs/notes": "notes/index.md", "LICENSE": None}  # fmt: skip
LANGUAGES = {".py": "python", ".c": "c", ".h": "c", ".toml": "toml", ".sh": "sh", ".html": "html"}
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(^```.*?^```)", re.M | re.S)


def place_of(name):
    """Where a file of the repository stands in the source folder; None: it is no page."""
    if name in PROJECT:
        return PROJECT[name]
    if name.startswith("docs/") and name.endswith(".md"):
        return name.removeprefix("docs/")
    return None


class Stage:
    """The source folder while it is made."""

    def __init__(self, folder):
        self.folder, self.sources = folder, {}
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def write(self, place, text):
        """Writes a page."""
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def page(self, name, extra=""):
        """A Markdown file of the repository as a page."""
        text = (ROOT / name).read_text(encoding="utf-8")
        parts = FENCE.split(text)
        for i in range(0, len(parts), 2):
            parts[i] = LINK.sub(
                lambda found: found.group(1) + self._target(name, found.group(2)) + found.group(3), parts[i]
            )
        self.write(place_of(name), "".join(parts) + extra)

    def _target(self, name, link):
        if "://" in link or link.startswith(("#", "mailto:")):
            return link
        path, _, anchor = link.partition("#")
        target = os.path.relpath((ROOT / name).parent / path, ROOT)
        place = place_of(target) or FOLDERS.get(target) or self._source(name, target)
        here = (self.folder / place_of(name)).parent
        return os.path.relpath(self.folder / place, here) + (f"#{anchor}" if anchor else "")

    def _source(self, name, target):
        path = ROOT / target
        if path.suffix in (".png", ".svg") and path.is_file():
            place = target.removeprefix("docs/")
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.folder / place)
            return place
        if path.is_dir():
            files = sorted(
                p for p in path.rglob("*") if p.suffix in (".py", ".c", ".toml") and "__pycache__" not in p.parts
            )
            if not files:
                raise SystemExit(f"docs: {name} links to {target}, which has no page")
            place = f"source/{target}.md"
            if target not in self.sources:
                self.sources[target] = None
                pages = [self.folder / self._source(name, str(p.relative_to(ROOT))) for p in files]
                links = [f"- [{p.relative_to(path)}]({os.path.relpath(page, self.folder / 'source')})"
                         for p, page in zip(files, pages)]  # fmt: skip
                self.write(place, f"---\norphan: true\n---\n\n# {target}/\n\n" + "\n".join(links) + "\n")
            return place
        if path.suffix not in LANGUAGES and path.name not in ("Makefile", "LICENSE"):
            raise SystemExit(f"docs: {name} links to {target}, which has no page")
        place = f"source/{target.replace('/', '-')}.md"
        if target not in self.sources:
            self.sources[target] = place
            text = path.read_text(encoding="utf-8")
            language = LANGUAGES.get(path.suffix, "text")
            self.write(place, f"---\norphan: true\n---\n\n# {target}\n\n``````{language}\n{text}\n``````\n")
        return place

    def toctrees(self):
        """The navigation, as Sphinx wants it at the end of the first page."""
        for title, pages in NAVIGATION.items():
            lines = "\n".join(pages)
            yield f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n"


def stage(folder):
    """Makes the source folder."""
    import cheaders
    import clipage
    import opspage

    made = Stage(folder)
    made._source("docs", "examples")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = str(path.relative_to(ROOT))
        if SITE in path.parents or name == "docs/README.md":
            continue
        stem = place_of(name).removesuffix(".md")
        below = BELOW.get(stem, [])
        if stem == "notes/index":
            below = sorted(f"notes/{note.stem}" for note in path.parent.glob("2*.md"))
        extra = ""
        if below:
            entries = "\n".join(f"/{entry}" for entry in below)
            extra = f"\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
        made.page(name, extra)
    for name in PROJECT:
        if name not in ("README.md", "docs/README.md"):
            made.page(name)
    made.page("docs/README.md", "".join(made.toctrees()))
    shutil.copytree(SITE / "reference", folder / "reference", dirs_exist_ok=True)
    cheaders.write_pages(ROOT / "include" / "drapps", folder / "reference" / "c")
    opspage.write_page(folder / "reference" / "ops.md")
    clipage.write_page(folder / "reference" / "cli.md")
