"""A consumer whose pace is set from outside: it takes a batch, reads it, and holds it for a step, as an accelerator would.

Standard input says `step SECONDS` to set the step and `end` to end; its end is an end, too.
"""

import os
import threading
import time

from . import workload


class Pace(threading.Thread):
    """Reads standard input."""

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
    """Lines as they come.  sys.stdin would be locked meanwhile, and forked workers close theirs, which waits for that."""
    text = b""
    while data := os.read(descriptor, 4096):
        *whole, text = (text + data).split(b"\n")
        yield from (line.decode() for line in whole)


def consume(batches, say):
    """[(time when a batch came, wait for it, samples)] in seconds of the monotonic clock; says when the first came."""
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
