"""Child processes that have little of something: CPU time, or bandwidth of storage.

CPU time is taken by a control group with a quota, or by other processes that compute (`drapps burn`).  Bandwidth is
taken by slow_read.c of benchmarks/c, a library for LD_PRELOAD that makes reads below a folder as slow as told.
"""

import contextlib
import json
import os
import pathlib
import struct
import subprocess
import sys

from benchmarks.experiments.disturb import Quota, burning

HERE = pathlib.Path(__file__).resolve().parent
BURN_SECONDS = 3600


def preloaded(name, folder):
    """Compiles benchmarks/c/NAME.c; returns the library."""
    library = pathlib.Path(folder) / f"{name}.so"
    if not library.exists():
        source = HERE.parents[1] / "c" / f"{name}.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


class Cpu:
    """CPUs that a child may use: "quota:0.5", "burn:4" (threads of others that compute), or "" (all there are)."""

    def __init__(self, text):
        self.kind, _, number = text.partition(":")
        if self.kind not in ("", "quota", "burn") or (self.kind and not number.replace(".", "", 1).isdigit()):
            raise SystemExit(f"CPUs must be quota:CPUS or burn:THREADS, got {text!r}")
        self.number = float(number or 0)

    def __str__(self):
        return {"": "all CPUs", "quota": f"{self.number:g} CPU by quota",
                "burn": f"{self.number:g} threads of others"}[self.kind]  # fmt: skip

    @contextlib.contextmanager
    def taken(self, pid):
        """Inside the block the process has no more than this."""
        if self.kind == "quota":
            group = Quota()
            try:
                group.set(self.number)
                group.add(pid)
                yield
            finally:
                group.close()
        else:
            with burning(int(self.number), BURN_SECONDS):
                yield


class Bandwidth:
    """Bytes a second that a child may read from files whose path has `part` in it; 0: as many as there are."""

    def __init__(self, work, part):
        self._path = pathlib.Path(work) / "rate.bin"
        self._path.write_bytes(struct.pack("q", 0))
        self._environment = {"LD_PRELOAD": str(preloaded("slow_read", work)), "SLOW_READ": str(part),
                             "SLOW_READ_RATE": str(self._path)}  # fmt: skip

    def environment(self):
        """Of a child that is to be slowed down."""
        return {**os.environ, **self._environment}

    def set(self, bytes_per_s):
        """From now on, also of children that run."""
        with open(self._path, "r+b") as file:
            file.write(struct.pack("q", int(bytes_per_s)))


class Child:
    """A child that prints lines of JSON and, where it waits for its parent, reads one."""

    def __init__(self, script, config, environment=None):
        self._process = subprocess.Popen([sys.executable, HERE / script, json.dumps(config)], env=environment,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
        self.pid = self._process.pid

    def line(self):
        """What it says next."""
        text = self._process.stdout.readline()
        if not text:
            raise SystemExit(f"a child of the experiment has ended with status {self._process.wait()}")
        return json.loads(text)

    def go_on(self):
        """It waits no longer."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def run_child(script, config, environment=None):
    """What a child prints that needs no further word."""
    with Child(script, config, environment) as child:
        return child.line()
