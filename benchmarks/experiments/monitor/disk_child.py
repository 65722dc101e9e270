"""Reads a file past the page cache, one request at a time, and prints its counts as a line of JSON.

    python -m benchmarks.experiments.monitor.disk_child FILE SECONDS
"""

import json
import mmap
import os
import sys
import time

BLOCK = 512 * 1024  # larger requests may be split; for smaller ones the time of the call itself matters


def read(path, seconds):
    """Return begin and end (by time.monotonic()), bytes, requests, and seconds of waiting."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    blocks, buffer = os.fstat(file).st_size // BLOCK, mmap.mmap(-1, BLOCK)  # a mapping is aligned as O_DIRECT needs it
    n, waited, begin = 0, 0.0, time.monotonic()
    while (asked := time.monotonic()) < begin + seconds:
        if os.preadv(file, [buffer], n % blocks * BLOCK) != BLOCK:
            raise OSError(f"{path}: a read was cut short")
        waited += time.monotonic() - asked
        n += 1
    os.close(file)
    return {"begin": begin, "end": asked, "bytes": n * BLOCK, "requests": n, "waited": waited}


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1], float(sys.argv[2]))))
