"""The cost of a monitor to its process, and of monitor and trace to a loader; and the range of every entry."""

import ctypes
import math
import os
import random
import tempfile
import time
from contextlib import ExitStack, contextmanager

from benchmarks.experiments import pictures, statistics
from benchmarks.experiments.disturb import beside, load
from benchmarks.experiments.monitor.monitor_findings import Finding, NotPossible, judged, side
from benchmarks.experiments.monitor.loader_child import open_loader
from benchmarks.experiments.monitor.readings import ThreadShare, run_child
from drapps.monitor import Monitor

ALONE = {"DRAPPS_POLICY": "off", "DRAPPS_LIVE": "off", "DRAPPS_TRACE": ""}  # a loader that opens no monitor by itself
DECIDING = {"DRAPPS_POLICY": "", "DRAPPS_LIVE": "off", "DRAPPS_TRACE": ""}  # as the loader's arguments say


@contextmanager
def _data(options):
    """Return the images of the user, or generated ones."""
    if options.data:
        yield options.data
        return
    with tempfile.TemporaryDirectory(prefix="drapps-experiment-") as folder:
        yield pictures.make_images(folder)


# --- the range ---


def unsound(snapshot):
    """Return the entries that are not finite or not in [0, 1]: (name, value, level)."""
    entries = [(name, value, snapshot.levels[name]) for name, value in snapshot.items()]
    entries += [(f"cpu {k}", use, use) for k, use in enumerate(snapshot.cpu)]
    return [entry for entry in entries if not (0 <= entry[1] < math.inf and 0 <= entry[2] <= 1)]


def value_range(options):
    """Test that every entry is finite and between 0 and 1 under random loads of all kinds."""
    rng, seconds, seen, entries, wrong = random.Random(options.seed), options.fuzz_seconds, set(), 0, []
    with _data(options) as data, Monitor(interval=0.05, history=200) as monitor, _random_loads(options, seconds), \
            _running(data, monitor):  # fmt: skip
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            monitor.interval = rng.choice((0.01, 0.02, 0.05, 0.1, 0.3))
            time.sleep(min(0.5, seconds / 2))
            for snapshot in monitor.history(after=number):
                number = snapshot.number
                seen.update(snapshot)
                entries += len(snapshot) + len(snapshot.cpu)
                wrong += unsound(snapshot)
    yield judged("every entry is finite and in [0, 1] under random loads of CPU, memory, storage and network, beside a "
                 "running loader", f"{len(wrong)} of {entries} entries were not, in {number} snapshots of "
                 f"{seconds:g} s; {len(seen)} sensors", not wrong, entries=entries, snapshots=number, wrong=wrong[:20],
                 sensors=sorted(seen))  # fmt: skip


@contextmanager
def _random_loads(options, seconds):
    cpus = len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="drapps-burn-", dir=options.folder))
        for k, kind in enumerate(("cpu", "memory", "io", "net")):
            threads = 1 if kind == "io" else cpus
            stack.enter_context(load(kind, seconds + 60, "--threads", threads, "--path", folder, "--pattern", "random",
                                     "--period", 0.7 + 0.4 * k, "--seed", options.seed + k))  # fmt: skip
        yield


@contextmanager
def _running(data, monitor):
    """Run a loader that the monitor watches inside the with block."""
    def run(end):
        while not end.is_set():
            for _ in loader:
                if end.is_set():
                    break

    with open_loader(data, resource_monitor=monitor) as loader, beside(run):
        yield


# --- its own cost ---


class _Heap(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                     "fsmblks", "uordblks", "fordblks", "keepcost")]  # fmt: skip


def _heap():
    """Return a function that returns the bytes in use by all threads, and leaks none itself."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        raise NotPossible("this C library does not report the size of its heap") from None
    mallinfo.restype = _Heap
    return lambda: mallinfo().uordblks


def cost(options):
    """Measure the monitor alone, at 100 ms, in a process that sleeps."""
    seconds = 3 * options.seconds
    with Monitor(history=10) as monitor:
        time.sleep(0.5)
        first, share, heap = monitor.latest().number, ThreadShare(), _heap()
        before = max(heap() for _ in range(3))  # the first call allocates something itself
        time.sleep(seconds)
        grown = heap() - before
        used, ticks = share.get(), monitor.latest().number - first
    yield judged("the thread uses 0.5 % of a CPU at most, at 100 ms", f"{used:.3%} over {seconds:g} s", used <= 0.005,
                 share=used)  # fmt: skip
    yield judged("ticks allocate nothing", f"the heap grew by {grown} bytes in {ticks} ticks (the monitor's unit test "
                 "counts allocations: none)", grown < ticks, grown=grown, ticks=ticks)  # fmt: skip


def throughput(options):
    """Measure a loader alone and beside a monitor, alternately."""
    with _data(options) as data:
        found = run_child("loader_child", "throughput", data, options.pairs, options.segment, options.seed,
                          environment=ALONE)  # fmt: skip
    yield loss(found["pairs"], found["samples"])


def trace(options):
    """Measure a loader with and without a trace, alternately; a monitor watches both."""
    with _data(options) as data:
        found = run_child("loader_child", "trace", data, options.pairs, options.segment, options.seed,
                          environment=DECIDING)  # fmt: skip
    lost = loss(found["pairs"], found["samples"], to="a trace", most=0.01)
    takes = {name: found[name] for name in ("writer_share", "bytes_per_s")}
    told = (f"{lost.measured}; the thread that writes uses {takes['writer_share']:.2%} of a CPU, the file grows by "
            f"{takes['bytes_per_s'] / 1000:.0f} kB/s")  # fmt: skip
    yield lost._replace(measured=told, figures={**lost.figures, **takes})


def loss(pairs, samples, to="a monitor", most=0.005):
    """Return the finding.  pairs: seconds for the same samples, [with, without]; most: the share that may be lost."""
    ratio = statistics.summary([without / with_it for with_it, without in pairs])
    rate = statistics.summary([samples / without for _, without in pairs])
    result = side(ratio.low, ratio.high, least=1 - most)
    allowed = f"{100 * most:g} %"
    excludes = {"kept": f"the interval excludes a loss of {allowed}", "missed": "the loss is larger",
                "not shown": f"the interval does not exclude a loss of {allowed}"}[result]  # fmt: skip
    return Finding(f"a loader loses less than {allowed} of its throughput to {to}",
                   f"{ratio.mean:.4f} of it [{ratio.low:.4f}, {ratio.high:.4f}], 95 % CI of {ratio.n} pairs by turns, "
                   f"at {rate.mean:.0f} samples/s: {excludes}",
                   result, {**ratio._asdict(), "pairs": pairs})  # fmt: skip


# --- deciding ---


def decisions(options):
    """Measure the monitor's thread with and without a policy that decides in it, alternately,
    beside a running loader."""
    with _data(options) as data:
        found = run_child("loader_child", "decisions", data, max(2, options.pairs // 5), options.seconds / 2,
                          options.seed, environment=DECIDING)  # fmt: skip
    yield deciding(found["pairs"], found["decisions_per_s"])


def deciding(pairs, rate):
    """Return the finding.  pairs: shares of a CPU, [with a policy, without]."""
    more = statistics.summary([with_policy - without for with_policy, without in pairs])
    both, alone = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    return Finding("observing and deciding, once a second, use 0.2 % of a CPU at most",
                   f"{more.mean:.3%} [{more.low:.3%}, {more.high:.3%}], 95 % CI of {more.n} pairs by turns (the thread "
                   f"uses {both:.3%}, without a policy {alone:.3%}), at {rate:.2f} decisions a second",
                   side(more.low, more.high, most=0.002),
                   {**more._asdict(), "decisions_per_s": rate})  # fmt: skip
