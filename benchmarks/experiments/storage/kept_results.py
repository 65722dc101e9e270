"""Results of an experiment that are kept in a file while it runs, so that it goes on where it was stopped."""

import sys
import time

from benchmarks.experiments.cells import Cells

SETTINGS = ("settings",)


class KeptResults:
    """Results by key, kept in a file where one is named (--results), and the time that is left (--minutes).

    settings: the options that decide what a result means.  A file that was made with others is refused.
    """

    def __init__(self, args, settings):
        self._cells = Cells(args.results) if args.results else _Memory()
        self._file, self._minutes, self.late = args.results, args.minutes, False
        self._end = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")
        there = self._cells.get(SETTINGS, lambda: settings)
        for name, value in settings.items():
            if there.get(name) != value:
                raise SystemExit(f"{args.results}: was made with {name} {there.get(name)!r}, not {value!r}; "
                                 "name another file, or give the same options")  # fmt: skip

    def get(self, key, measure):
        """The result of a key, a dict; measure() makes a missing one.  None: it is missing, and there is no time."""
        if key not in self._cells.results and time.monotonic() >= self._end:
            self._say_late()
            return None
        return self._cells.get(key, measure)

    def _say_late(self):
        if not self.late:
            more = "the same command goes on" if self._file else "with --results FILE, the same command would go on"
            print(f"{self._minutes:g} minutes are over: what was measured follows; {more}", file=sys.stderr)
        self.late = True


class _Memory:
    """Cells that are not kept."""

    def __init__(self):
        self.results = {}

    def get(self, key, measure):
        if key not in self.results:
            self.results[key] = measure()
        return self.results[key]
