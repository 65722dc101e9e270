"""The terminal of `drapps top`: draws repeatedly, reads keys, and restores the terminal at the end."""

import os
import select
import sys
import termios
import time
import tty
from contextlib import contextmanager

from rich.console import Console, Group
from rich.control import Control
from rich.text import Text

from drapps.top.frame import draw, help_lines
from drapps.top.rates import SORTS, arrange

PEEK = 0.1  # seconds between checks of the terminal's size
ASCII = str.maketrans({"█": "#", "▌": "#", "▒": "+", "░": ".", "─": "-", "▸": ">", "…": "~", "µ": "u", "→": ">",
                       **dict(zip("▁▂▃▄▅▆▇", "_.:-=+*"))})  # fmt: skip
UP, DOWN = "\x1b[A", "\x1b[B"


def plain(loaders, complaints, width):
    """Return a frame as text without colours, for files, pipes and --once."""
    lines = [line.plain.rstrip() for line in draw(loaders, complaints, width)]
    text = "\n".join(lines) + "\n"
    return text if _speaks_unicode(sys.stdout) else text.translate(ASCII)


def _speaks_unicode(file):
    return "utf" in (file.encoding or "").lower()


@contextmanager
def _keys():
    """Switch line editing and echo off inside the with block; yields a function that waits for a key (timeout: "")."""
    if not sys.stdin.isatty():
        yield lambda timeout: time.sleep(timeout) or ""
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)  # Ctrl-C still interrupts
        yield lambda timeout: _key(fd, timeout)
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _key(fd, timeout):
    if not select.select([fd], [], [], timeout)[0]:
        return ""
    return os.read(fd, 16).decode(errors="replace") or "q"  # end of input: the terminal is gone


class Screen:
    """The state of the view: the selected loader and the order."""

    def __init__(self, watcher, interval, sort):
        self.watcher, self.interval, self.sort = watcher, interval, sort
        self.chosen = None  # the key of a loader
        self.helps = False
        self.loaders, self.complaints = [], []

    def run(self):
        """Show frames until q or Ctrl-C."""
        console = Console(markup=False, highlight=False)
        with _keys() as next_key, console.screen(hide_cursor=True) as screen:
            try:
                while self._show(console, screen, next_key):
                    pass
            except KeyboardInterrupt:
                pass

    def _show(self, console, screen, next_key):
        """Poll once and show frames until the next poll; return False to leave."""
        self.loaders, self.complaints = self.watcher.poll()
        due = time.monotonic() + self.interval
        size = None
        while time.monotonic() < due:
            if console.size != size:
                size = console.size
                with console:  # as a single write
                    console.control(Control.home())
                    screen.update(self._frame(console))
            key = next_key(min(PEEK, max(0.0, due - time.monotonic())))
            if key in ("q", "Q"):
                return False
            if self._handle_key(key):
                size = None
        return True

    def _handle_key(self, key):
        """Handle a key; return whether the frame changes."""
        if key in ("?", "h"):
            self.helps = not self.helps
        elif key in ("s", "S"):
            self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        elif key in (UP, "k", DOWN, "j", "\t"):
            loaders = arrange(self.loaders, self.sort)
            step = -1 if key in (UP, "k") else 1
            if loaders:
                self.chosen = loaders[(self._selected(loaders) + step) % len(loaders)].key
        else:
            return False
        return True

    def _selected(self, loaders):
        keys = [loader.key for loader in loaders]
        return keys.index(self.chosen) if self.chosen in keys else 0

    def _frame(self, console):
        width, height = console.size
        loaders = arrange(self.loaders, self.sort)
        hint = f"by {self.sort} (s), tab: next, ?: help, q: quit" if len(loaders) > 1 else "?: help, q: quit"
        if self.helps:
            lines = help_lines(width, height)
        else:
            lines = draw(loaders, self.complaints, width, height, self._selected(loaders), hint)
        if not _speaks_unicode(console):
            lines = [Text(line.plain.translate(ASCII)) for line in lines]
        return Group(*lines)
