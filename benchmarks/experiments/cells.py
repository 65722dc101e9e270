"""Cells: a file of results in JSON lines, appended as they are measured; existing results are not measured again."""

import json
import os


class Cells:
    """The results of an experiment.  A key is a tuple of texts and numbers."""

    def __init__(self, path):
        self._path = path
        self.results = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.results = dict(_entry(line, path, k) for k, line in enumerate(file, 1) if line.endswith("\n"))

    def get(self, key, measure):
        """Return the result of a cell, a dict; measure() makes a missing one."""
        if key not in self.results:
            result = measure()
            self._append(key, result)
            self.results[key] = result
        return self.results[key]

    def _append(self, key, result):
        """Append a result.  An incomplete last line, left by a kill, is overwritten."""
        text = json.dumps({"cell": key, **result}) + "\n"
        with open(self._path, "a+b") as file:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())


def _entry(line, path, number):
    try:
        result = json.loads(line)
        return tuple(result.pop("cell")), result
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SystemExit(f"{path}:{number}: not a result of an experiment: {line[:60]!r}") from None
