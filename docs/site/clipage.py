"""The page of the command line, made of what each command prints with --help."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from drapps.cli import COMMANDS

HEAD = """# Command line

This page has the output of `drapps COMMAND --help`. Every command exits with status 0 on success, 1 on failure, 2 on
wrong usage, and 130 after Ctrl-C. `bench loaders` and `experiment` need a source checkout.

"""


def _help(words):
    done = subprocess.run([sys.executable, "-m", "drapps.cli", *words, "--help"], capture_output=True, text=True,
                          env={**os.environ, "COLUMNS": "82", "NO_COLOR": "1", "XDG_CACHE_HOME": "~/.cache"})
    if done.returncode:
        raise SystemExit(f"docs: drapps {' '.join(words)} --help failed: {done.stderr}")
    return done.stdout.strip()


def _parts(text):
    """The subcommands that a help text lists."""
    listed = re.split(r"^options:", text, flags=re.M)
    return [name for part in listed for name in re.findall(r"^    ([a-z][a-z-]*)(?=  )", part, re.M)]


def write_page(path):
    """Writes the page."""
    with ThreadPoolExecutor(2) as pool:
        texts = dict(zip(COMMANDS, pool.map(_help, ([name] for name in COMMANDS))))
        pairs = [(name, part) for name, text in texts.items() for part in _parts(text)]
        below = dict(zip(pairs, pool.map(_help, map(list, pairs))))
    lines = [HEAD]
    for name, text in texts.items():
        lines += [f"## drapps {name}\n", f"```text\n{text}\n```\n"]
        for (command, part), more in below.items():
            if command == name:
                lines += [f"### drapps {name} {part}\n", f"```text\n{more}\n```\n"]
    path.write_text("\n".join(lines), encoding="utf-8")
