"""A consumer whose pace is set from outside: it takes a batch, reads it, and holds it for a step, like an accelerator.

Standard input has lines `step SECONDS`, which set the step, and `end`; end of file is the same as `end`.
"""

import os
import threading
import time

from . import workload


class Pace(threading.Thread):
    """Reads standard input in a thread."""

    def __init__(self):
        super().__init__(daemon=True)
        self.step, self.ended = 0.0, threading.Event()

    def run(self):
        for line in _lines(0):
            word, *rest = line.split() or [""]
            if word == "step":
                self.step = float(rest[0])
            elif word == "end":
                break
        self.ended.set()


def _lines(descriptor):
    """Yield lines as they come.  sys.stdin would hold a lock meanwhile, on which forked workers
    wait when they close it."""
    text = b""
    while data := os.read(descriptor, 4096):
        *whole, text = (text + data).split(b"\n")
        yield from (line.decode() for line in whole)


def consume(batches, say):
    """Return [(arrival time of a batch, wait for it, samples)] by the monotonic clock; announce the first batch."""
    pace, taken = Pace(), []
    pace.start()
    while not pace.ended.is_set():
        asked = time.monotonic()
        images = next(batches)
        came = time.monotonic()
        workload.read_batch(images)
        if not taken:
            say("first batch")
        taken.append((round(came, 5), round(came - asked, 5), len(images)))
        if pace.step:
            time.sleep(max(0.0, came + pace.step - time.monotonic()))
    return taken
