"""Builds the site: stages its sources, runs Sphinx with warnings as errors, checks links into pages.

    python docs/site/build.py [FOLDER]      # default: build/docs
"""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

SITE = Path(__file__).resolve().parent
sys.path.insert(0, str(SITE))

from sphinx.cmd.build import build_main
from stage import ROOT, stage


class Links(HTMLParser):
    """The links of a page, and the ids that links may name."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.add(given["id"])
        if tag in ("a", "link", "img", "script") and (link := given.get("href") or given.get("src")):
            self.links.add(link)


def broken_links(folder):
    """Links of built pages to files or headings that are not there."""
    pages = {path: Links(path) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name.split("?")[0]).resolve() if name else path
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].ids):
                yield f"{path.relative_to(folder)}: {link}"


def main(arguments):
    """Builds into the folder and returns the exit status."""
    out = Path(arguments[0]) if arguments else ROOT / "build" / "docs"
    shutil.rmtree(out / "html", ignore_errors=True)  # pages that are no more
    stage(out / "source")
    options = ["-b", "html", "-W", "--keep-going", "-q", "-c", str(SITE), "-d", str(out / "cache")]
    status = build_main([*options, str(out / "source"), str(out / "html")])
    broken = sorted(broken_links(out / "html")) if status == 0 else []
    for link in broken:
        print(f"docs: broken link: {link}", file=sys.stderr)
    if status == 0 and not broken:
        print(f"docs: {out / 'html' / 'index.html'}")
    return status or bool(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
