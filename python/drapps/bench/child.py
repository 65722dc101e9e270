"""One peer, one process, one JSON line.

    PYTHON child.py PEER --data DIR [--settings JSON] [--samples N] [--no-memory]    measure
    PYTHON child.py PEER --data DIR [--settings JSON] --paced            at a pace that standard input sets
    PYTHON child.py PEER --data DIR --prepare                            convert the files, if the peer needs it
    PYTHON child.py PEER --data DIR --pixels BOXES.json --out FILE.npy   the pixels of given crops
    PYTHON child.py drapps --data DIR [--settings JSON] --draw BOXES.json --out FILE.npy
                                                                         the crops a loader drew, and their pixels

PYTHON is the interpreter of the peer's environment, which has no drapps.  So this file is run by its path and imports
its folder as a package; relative imports then work as inside drapps.
"""

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def load_package():
    """Import this folder as the package `drapps_bench`, and remove it from the path: it has files named like peers."""
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
    spec = importlib.util.spec_from_file_location(
        "drapps_bench", os.path.join(HERE, "__init__.py"), submodule_search_locations=[HERE])
    package = importlib.util.module_from_spec(spec)
    sys.modules["drapps_bench"] = package
    spec.loader.exec_module(package)
    return package.__name__


class Monitor:
    """The memory sampler of this process (process.py)."""

    def __init__(self):
        self.child = subprocess.Popen([sys.executable, "-I", "-S", os.path.join(HERE, "process.py"), str(os.getpid())],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def stop(self):
        """Return the peak bytes of the process tree since the start."""
        out, _ = self.child.communicate(b"stop")  # forked workers hold the pipe, too: closing it would not be noticed
        return int(out)


def percentiles(values):
    """Return p50, p95, p99 and the maximum of a list of numbers."""
    ordered = sorted(values)

    def at(share):
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": ordered[-1]}


def consume(batches, samples, read):
    """Take batches until `samples` are read; return the number of samples and the wait for each batch in ms."""
    taken, waits = 0, []
    while taken < samples:
        asked = time.perf_counter()
        images = next(batches)
        waits.append((time.perf_counter() - asked) * 1e3)
        read(images)
        taken += len(images)
    return taken, waits


def measure(batches, samples, warm, read, skip=()):
    """Read `warm` samples, then at least `samples`; return rate, CPU time of the process tree and
    waits of the latter."""
    process = importlib.import_module("drapps_bench.process")
    consume(batches, warm, read)
    cpu, began = process.cpu_seconds(os.getpid(), skip), time.perf_counter()
    taken, waits = consume(batches, samples, read)
    seconds = time.perf_counter() - began
    cpu = process.cpu_seconds(os.getpid(), skip) - cpu
    return {"samples": taken, "seconds": round(seconds, 3), "samples_per_s": round(taken / seconds, 2),
            "cpu_ms_per_sample": round(cpu * 1e3 / taken, 4),
            "wait_ms": {k: round(v, 3) for k, v in percentiles(waits).items()}}


def run_measure(args, peer, base):
    workload = importlib.import_module("drapps_bench.workload")
    monitor = None if args.no_memory else Monitor()
    batches = iter(peer.batches(args.settings))
    warm = args.warm if args.warm is not None else max(len(peer.files), 4 * workload.BATCH)
    line = measure(batches, args.samples, warm, workload.read_batch, (monitor.child.pid,) if monitor else ())
    if monitor:
        peak = monitor.stop()
        line.update(peak_pss_mb=round(peak / 1e6, 1), base_pss_mb=round(base / 1e6, 1),
                    pss_above_mb=round((peak - base) / 1e6, 1))
    line.update(cpus=len(os.sched_getaffinity(0)), load=round(os.getloadavg()[0], 2), settings=args.settings)
    return line


def run_paced(args, peer):
    paced = importlib.import_module("drapps_bench.paced")
    batches = paced.consume(iter(peer.batches(args.settings)), lambda text: print(text, flush=True))
    return {"batches": batches, "settings": args.settings}


def write_pixels(path, samples):
    import numpy as np

    np.save(path, np.stack([np.asarray(s, dtype=np.float32) for s in samples]))


def run_pixels(args, peer):
    with open(args.pixels) as f:
        boxes = json.load(f)
    samples = peer.pixels(boxes)
    if samples is None:
        return {"pixels": None}
    write_pixels(args.out, samples)
    return {"pixels": args.out, "samples": len(boxes)}


def run_draw(args, peer):
    boxes, samples = peer.draw(args.settings)
    write_pixels(args.out, samples)
    with open(args.draw, "w") as f:
        json.dump(boxes, f)
    return {"pixels": args.out, "boxes": args.draw, "samples": len(boxes)}


def parse(argv):
    parser = argparse.ArgumentParser(prog="child.py", description="run one peer of the bench in this environment")
    parser.add_argument("peer")
    parser.add_argument("--data", required=True, help="folder of JPEG files")
    parser.add_argument("--cache", default=os.path.join(os.path.expanduser("~"), ".cache", "drapps", "peers", "data"),
                        help="folder for converted copies")
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON object; see the peer's candidates")
    parser.add_argument("--samples", type=int, default=4096, help="least number of samples to measure")
    parser.add_argument("--warm", type=int, help="samples before the measurement; default: one epoch")
    parser.add_argument("--no-memory", action="store_true", help="measure without the sampler of memory")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--paced", action="store_true")
    parser.add_argument("--pixels", metavar="BOXES.json")
    parser.add_argument("--draw", metavar="BOXES.json")
    parser.add_argument("--out", metavar="FILE.npy")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    package = load_package()
    process = importlib.import_module(package + ".process")
    peers = importlib.import_module(package + ".peers")
    importlib.import_module(peers.row(args.peer).framework)
    base = process.pss_bytes(os.getpid())
    workload = importlib.import_module(package + ".workload")
    files = workload.find_files(args.data)
    peer = peers.load(args.peer)(files, os.path.join(args.cache, files.fingerprint()))
    if args.prepare:
        peer.prepare()
        line = {"prepared": True}
    elif args.paced:
        line = run_paced(args, peer)
    elif args.pixels:
        line = run_pixels(args, peer)
    elif args.draw:
        line = run_draw(args, peer)
    else:
        line = run_measure(args, peer, base)
    line.update(peer=args.peer, version=peer.version())
    print(json.dumps(line), flush=True)
    end_tree(process)


def end_tree(process):
    """Kill this process's workers: a loader that ends slowly would disturb the next one."""
    for pid in reversed(process.tree(os.getpid())[1:]):
        try:
            os.kill(pid, 9)
        except OSError:
            pass
    os._exit(0)


if __name__ == "__main__":
    main()
