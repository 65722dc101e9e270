"""Allocates and touches memory, and prints the monitor's readings before and after as a line of JSON.

    python -m benchmarks.experiments.monitor.memory_child BYTES
"""

import json
import mmap
import sys

from benchmarks.experiments.monitor.readings import mean, watch
from drapps.monitor import Monitor

SETTLE = 1.5  # seconds: the reclaimable memory of a group is read once per second


def measure(size):
    """Return used memory before and after, and the total memory."""
    with Monitor() as monitor:
        before = mean(watch(monitor, SETTLE)[-3:], "mem_used")
        block = mmap.mmap(-1, size)
        for page in range(0, size, mmap.PAGESIZE):
            block[page] = 1
        last = watch(monitor, SETTLE)[-3:]
        everything = last[-1]["mem_used"] / last[-1].levels["mem_used"]
        return {"before": before, "after": mean(last, "mem_used"), "all": everything}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
