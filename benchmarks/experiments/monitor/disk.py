"""Storage: compares the monitor with a reader that bypasses the page cache and counts bytes and times."""

import os
import tempfile
import time

from benchmarks.experiments.monitor.monitor_findings import NotPossible, judged
from benchmarks.experiments.monitor.readings import mean, opened, run_child, watch

FILE_BYTES, PIECE = 256 * 2**20, 2**20
REST = 1.0  # seconds after writing


def disk(options):
    """Test the readings while a file is read with O_DIRECT, one request at a time."""
    with tempfile.TemporaryDirectory(prefix="drapps-disk-", dir=options.folder) as folder:
        path = f"{folder}/file"
        _write(path)
        with opened(1.5 * options.seconds + 30) as monitor:
            calm = watch(monitor, options.seconds / 2)
            reader = run_child("disk_child", path, options.seconds)
            busy = [s for s in monitor.history() if reader["begin"] + monitor.interval < s.time <= reader["end"]]
    if len(busy) < 3:
        raise NotPossible("the reader ended too early")
    yield from _compare(reader, calm, busy)


def _write(path):
    """Write random bytes, which no file system stores as holes."""
    piece = os.urandom(PIECE)
    with open(path, "wb") as file:
        for _ in range(FILE_BYTES // PIECE):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        raise NotPossible(f"O_DIRECT in {os.path.dirname(path)}: {error.strerror}") from None
    os.sync()
    time.sleep(REST)


def _compare(reader, calm, busy):
    own, latency = reader["bytes"] / (reader["end"] - reader["begin"]), reader["waited"] / reader["requests"]
    seen, waited = mean(busy, "disk_bandwidth"), mean(busy, "disk_latency")
    before, during = mean(calm, "pressure_io"), mean(busy, "pressure_io")
    yield judged("bytes a second within 5 % of what a reader with O_DIRECT counts",
                 f"{seen / 1e6:.1f} of {own / 1e6:.1f} MB/s: {seen / own - 1:+.1%}", abs(seen / own - 1) <= 0.05,
                 seen=seen, own=own)  # fmt: skip
    yield judged("latency within 20 % of what it measures",
                 f"{waited * 1e6:.0f} of {latency * 1e6:.0f} µs: {waited / latency - 1:+.1%}",
                 abs(waited / latency - 1) <= 0.2, seen=waited, own=latency)  # fmt: skip
    yield judged("pressure on storage rises", f"{before:.1%} to {during:.1%} of the time", during > before + 0.05,
                 before=before, during=during)  # fmt: skip
