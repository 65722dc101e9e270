"""A process of `drapps bench jpeg` that holds the files and decodes them on request.

    PYTHON jpeg_child.py JOB.json       {"paths": [...], "boxes": [[x, y, w, h], ...], "cpus": [...]}

Each line on standard input is a JSON object, each answer one on standard output:

    {"open": WAY}                                  {"version": ...}
    {"digest": WAY, "task": "full" | "crop"}       {"digests": [...]}: what the pixels of each file are, for comparing
    {"run": WAY, "task": ..., "threads": N}        {"seconds": ...}: all files once

An answer {"error": ...} says why something cannot be done.  PYTHON may be the interpreter of an environment without
drapps: see child.py, whose way of importing this folder is used.  The process keeps to the CPUs of its job.
"""

import hashlib
import importlib
import itertools
import json
import os
import sys
import threading
import time


class Server:
    """The files, and the ways opened on them."""

    def __init__(self, job, table):
        self.boxes = [tuple(box) for box in job["boxes"]]
        self.table = table
        self.ways = {}
        self.files = []
        for path in job["paths"]:
            with open(path, "rb") as f:
                self.files.append(f.read())

    def answer(self, order):
        if "open" in order:
            return self.open(order["open"])
        if "digest" in order:
            return self.digest(self.ways[order["digest"]], order["task"])
        return self.run(self.ways[order["run"]], order["task"], order["threads"])

    def open(self, name):
        way = self.table.row(name).way(self.files)
        self.ways[name] = way
        return {"version": way.version()}

    def boxes_of(self, task):
        return self.boxes if task == "crop" else [None] * len(self.files)

    def digest(self, way, task):
        return {"digests": [digest(way, i, box) for i, box in enumerate(self.boxes_of(task))]}

    def run(self, way, task, threads):
        boxes, turn, failures = self.boxes_of(task), itertools.count(), []

        def work():
            try:
                while (i := next(turn)) < len(boxes):
                    way.decode(i, boxes[i])
            except Exception as error:  # raised again by the waiting thread
                failures.append(error)

        workers = [threading.Thread(target=work) for _ in range(threads - 1)]
        began = time.perf_counter()
        for worker in workers:
            worker.start()
        work()
        for worker in workers:
            worker.join()
        seconds = time.perf_counter() - began
        if failures:
            raise failures[0]
        return {"seconds": seconds}


def digest(way, i, box):
    """Return shape and hash of the pixels of a file, or the error."""
    import numpy

    try:
        pixels = numpy.ascontiguousarray(way.decode(i, box))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"{pixels.shape} {hashlib.blake2b(pixels, digest_size=16).hexdigest()}"


def serve(server, lines, out):
    for line in lines:
        try:
            answer = server.answer(json.loads(line))
        except (Exception, SystemExit) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


def main():
    with open(sys.argv[1]) as f:
        job = json.load(f)
    os.sched_setaffinity(0, job["cpus"])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    package = importlib.import_module("child").load_package()
    serve(Server(job, importlib.import_module(package + ".jpeg_ways")), sys.stdin, out)


if __name__ == "__main__":
    main()
