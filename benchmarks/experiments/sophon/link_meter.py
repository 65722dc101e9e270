"""Measures what a loader takes from the link of its host: for children in any environment, so without drapps.

    result = measure(batches, seconds, count)
"""

import pathlib
import threading
import time

SKIPPED = 1.0  # second: connections open, windows grow
STEP = 0.02


def received():
    """Bytes that this host has received on its link, with the headers of the packets."""
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("link0:"):
            return int(line.split(":")[1].split()[0])
    return 0


class Meter(threading.Thread):
    """Notes what the link has carried while a loader runs."""

    def __init__(self):
        super().__init__(daemon=True)
        self.marks, self.over = [(time.monotonic(), received())], threading.Event()

    def run(self):
        while not self.over.wait(STEP):
            self.marks.append((time.monotonic(), received()))


def measure(batches, seconds, count):
    """Take batches for so many seconds after the first one; return what came then.  count: samples of a batch."""
    meter, samples, all_samples = Meter(), 0, 0
    begin = meter.marks[0][0]
    meter.start()
    for batch in batches:
        now, n = time.monotonic(), count(batch)
        all_samples += n
        if now > begin + SKIPPED:
            samples += n
        if now > begin + SKIPPED + seconds:
            break
    meter.over.set()
    meter.join()
    marks = [mark for mark in meter.marks if mark[0] >= begin + SKIPPED] or meter.marks[-1:]
    window = max(marks[-1][0] - marks[0][0], STEP)
    return {"seconds": window, "samples": samples, "bytes": marks[-1][1] - marks[0][1], "all_samples": all_samples}
