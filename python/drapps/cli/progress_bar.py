"""A progress bar on stderr, where that is a terminal."""

import sys
from contextlib import contextmanager


@contextmanager
def progress_bar(what, total=None):
    """Gives a function that takes (done, total): without a terminal it does nothing."""
    if not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, total=None: bar.update(task, completed=done, **({"total": total} if total else {}))
