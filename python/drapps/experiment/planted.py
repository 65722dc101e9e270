"""Ten planted bottlenecks and two healthy runs: does `drapps profile` name them?

    drapps experiment planted --seed 1

Each plant writes data and a training script, and makes the conditions around a child process that runs
`drapps profile script.py`.  Strength and place are random by the seed.  The child sees only the run: no parameter of
the plant but what any script says of itself.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from drapps.cli.show import print_json, print_table
from drapps.experiment import pictures
from drapps.experiment.disk_limit import disk_limit
from drapps.experiment.disturb import Quota, burning

SECONDS = 10  # of measuring, for each plant
LIMIT = 120
CALM = {"DRAPPS_POLICY": "off", "DRAPPS_SEEK_INDEX": "memory"}  # settings stay as the script says; no file is left

SCRIPT = """
import itertools
import time
import numpy
import drapps

def accelerator(seconds):
    time.sleep(seconds)

def pausing(every, seconds, steps=itertools.count(1)):
    if next(steps) % every == 0:
        time.sleep(seconds)

def on_cpu(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(2000))

def arranged(image):
    for _ in range({turns}):
        image = numpy.sort(image, axis=1)
    return image

pipe = drapps.read({folder!r}){chain}
loader = pipe.loader(shuffle=True, outputs="image", output="numpy", {settings})
while True:
    for batch in loader:
        {step}
"""


@dataclass
class Case:
    """What a plant makes: a script, and the conditions around it."""

    chain: str = ".decode().random_resized_crop(160).random_horizontal_flip()"
    settings: dict = field(default_factory=dict)
    step: str = "pass"
    environment: dict = field(default_factory=dict)
    enter: object = None  # called in the child before it becomes the program
    turns: int = 1  # of the Python function, where the chain has it
    strength: str = ""  # for the table

    def write(self, path, folder):
        """The script."""
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        with open(path, "w") as file:
            file.write(SCRIPT.format(folder=folder, chain=self.chain, settings=settings, step=self.step,
                                     turns=self.turns))


class Plant(NamedTuple):
    """A row of the table: what is expected, and what makes it."""

    name: str
    expected: str
    make: object  # (Field) -> Case


class Row(NamedTuple):
    """What came of a plant."""

    name: str
    expected: str
    verdict: str
    strength: str
    seconds: float
    findings: list
    facts: dict

    @property
    def right(self):
        return self.verdict == self.expected


class Field:
    """Where a plant grows: a folder, random numbers, and things to be undone."""

    def __init__(self, root, seed, name):
        self.root, self.folder = root, f"{root}/data"
        self.random = random.Random(f"{seed}/{name}")
        self.undo = ExitStack()

    def usual(self, n=400, side=320):
        """Pictures of the usual size."""
        pictures.write_pictures(self.folder, n, side, self.random.randrange(1 << 30))

    def between(self, low, high):
        """A strength, even on a logarithmic scale."""
        return low * (high / low) ** self.random.random()

    def batch_seconds(self, case, workers=2):
        """How long the loader takes for a batch of the case, by a short run here without its conditions."""
        from drapps.pipeline import read

        pipe = eval(f"source{case.chain}", {"source": read(self.folder)})  # the plant's own text
        settings = {**case.settings, "workers": workers, "memory_limit": 0}
        with pipe.loader(shuffle=True, outputs="image", output="raw", **settings) as loader:
            return min(_drain(loader) for _ in range(3))


def _drain(loader):
    """Seconds for a batch, over an epoch of at most a second."""
    begun, made = time.monotonic(), 0
    for _ in loader:
        made += 1
        if time.monotonic() > begun + 1:
            break
    return (time.monotonic() - begun) / made


# --- the plants ---


def slow_disk(at):
    """Few bytes a second from the disk."""
    pictures.write_pictures(at.folder, 300, 640, at.random.randrange(1 << 30), quality=95)
    speed = at.between(4e6, 16e6)
    case = Case(settings={"batch_size": 8, "workers": 2}, step="accelerator(0.004)", strength=f"{speed / 1e6:.1f} MB/s")
    case.enter = at.undo.enter_context(disk_limit(at.folder, "bps", int(speed)))
    at.undo.enter_context(pictures.forgotten(at.folder))
    return case


def small_files(at):
    """Files of a few KB on a disk that finds a few thousand a second."""
    side, finds = at.between(48, 96), at.between(1000, 3000)
    pictures.write_pictures(at.folder, 12000, int(side), at.random.randrange(1 << 30))
    case = Case(".decode().resize(64).center_crop(48)", {"batch_size": 64, "workers": 2}, "accelerator(0.002)",
                strength=f"side {side:.0f}, {finds:.0f} reads/s")  # fmt: skip
    case.enter = at.undo.enter_context(disk_limit(at.folder, "iops", int(finds)))
    at.undo.enter_context(pictures.forgotten(at.folder))
    return case


def slow_source(at):
    """Each read waits, whatever it reads."""
    at.usual()
    delay = at.between(3e-3, 15e-3)
    return Case(settings={"batch_size": 16, "workers": 2}, step="accelerator(0.004)",
                environment={"DRAPPS_READ_DELAY_US": str(int(delay * 1e6))},
                strength=f"{delay * 1e3:.1f} ms a read")  # fmt: skip


def slow_op(at):
    """One op, or one Python function, costs more than all others."""
    at.usual()
    ops = ["decode()", "random_resized_crop(160)", "random_horizontal_flip()", "color_jitter(brightness=0.2)"]
    size, turns = at.random.choice([45, 61, 75]), at.random.randint(4, 10)
    blur = f"gaussian_blur(kernel_size={size}, sigma=[{size / 6:.1f}, {size / 6:.1f}])"
    slow, strength = at.random.choice([(blur, blur), ("map(arranged, field='image')", f"{turns} turns of a function")])
    place = at.random.randint(1, len(ops))
    ops.insert(place, slow)
    return Case("." + ".".join(ops), {"batch_size": 16, "workers": 2}, "accelerator(0.002)", turns=turns,
                strength=f"{strength} after {ops[place - 1]}")  # fmt: skip


def slow_samples(at):
    """One picture in some is huge."""
    at.usual(360)
    share, side = at.between(0.05, 0.12), int(at.between(2000, 3200))
    pictures.write_pictures(at.folder, int(360 * share / (1 - share)), side, at.random.randrange(1 << 30), first=360)
    return Case(settings={"batch_size": 16, "workers": 2}, step="accelerator(0.001)",
                strength=f"{share:.0%} of side {side}")  # fmt: skip


def starved_cpu(at):
    """Another program has the CPUs, too."""
    at.usual()
    threads = at.random.randint(1, 2) * len(os.sched_getaffinity(0))
    case = Case(settings={"batch_size": 32, "workers": 2}, strength=f"{threads} threads")
    case.step = f"accelerator({0.4 * at.batch_seconds(case):.4f})"
    at.undo.enter_context(burning(threads, LIMIT))
    return case


def throttled_quota(at):
    """The container has a part of a CPU."""
    at.usual()
    quota = at.between(0.3, 0.8)
    case = Case(settings={"batch_size": 32, "workers": 2}, strength=f"{quota:.2f} CPUs")
    case.step = f"accelerator({0.2 * at.batch_seconds(case):.4f})"
    group = Quota()
    at.undo.callback(group.close)
    group.set(quota)
    case.enter = lambda: group.add(os.getpid())
    return case


def slow_consumer(at):
    """The trainer takes far longer than the loader."""
    at.usual()
    times = at.between(5, 12)
    case = Case(settings={"batch_size": 32, "workers": 2}, strength=f"{times:.1f} times the loader")
    case.step = f"accelerator({times * at.batch_seconds(case):.4f})"
    return case


def memory_limit(at):
    """One batch fits, and the trainer pauses now and then: what could be made meanwhile has no room."""
    at.usual()
    room, every, times = at.random.uniform(1.1, 1.6), at.random.randint(5, 9), at.random.uniform(1.05, 1.3)
    case = Case(settings={"batch_size": at.random.choice([32, 48, 64]), "workers": 2, "prefetch": every + 2},
                strength=f"{room:.1f} batches, a pause every {every}")  # fmt: skip
    case.step = f"pausing({every}, {every * times * at.batch_seconds(case):.4f})"
    batch_bytes = case.settings["batch_size"] * 160 * 160 * 3
    case.settings["memory_limit"] = int(2 * room * batch_bytes)  # half of it is for batches
    return case


def oversubscribed_workers(at):
    """Many workers on few CPUs, and a trainer that needs one of these, a little longer than a worker for a batch."""
    at.usual()
    cpus = len(os.sched_getaffinity(0))
    workers, times = at.random.randint(12, 20) * cpus, at.between(1.1, 1.25) * cpus
    case = Case(settings={"batch_size": 32, "prefetch": 4},
                strength=f"{workers} workers, trainer {times:.1f} times the loader")  # fmt: skip
    case.step = f"on_cpu({times * at.batch_seconds(case, cpus):.4f})"
    case.settings["workers"] = workers
    return case


def _trainer_bound(at, low, high):
    at.usual()
    times = at.random.uniform(low, high)
    case = Case(settings={"batch_size": 32, "workers": 2, "prefetch": 4}, strength=f"{times:.2f} times the loader")
    case.step = f"accelerator({times * at.batch_seconds(case):.4f})"
    return case


def healthy(at):
    """The trainer is the limit, by a little."""
    return _trainer_bound(at, 1.6, 2.2)


def balanced(at):
    """Trainer and loader are about as fast."""
    return _trainer_bound(at, 1.1, 1.3)


PLANTS = (
    *(Plant(make.__name__, make.__name__, make)
      for make in (slow_disk, slow_op, starved_cpu, slow_consumer, small_files, slow_samples, memory_limit,
                   throttled_quota, slow_source, oversubscribed_workers)),
    Plant("healthy", "healthy", healthy), Plant("balanced", "healthy", balanced),
)  # fmt: skip


# --- running them ---


def run(seed=1, names=None, seconds=SECONDS, say=lambda row: None):
    """Rows, one a plant, in an order by the seed.  say: called with each as it is there."""
    chosen = [plant for plant in PLANTS if not names or plant.name in names]
    random.Random(seed).shuffle(chosen)
    rows = []
    for plant in chosen:
        rows.append(_run_one(plant, seed, seconds))
        say(rows[-1])
    return rows


def _run_one(plant, seed, seconds):
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="drapps-planted-") as root:
        at = Field(root, seed, plant.name)
        os.mkdir(at.folder)
        with at.undo:
            try:
                case = plant.make(at)
            except SystemExit as error:  # this machine does not let us make the conditions
                return Row(plant.name, plant.expected, "not run", str(error), 0.0, [], {})
            case.write(f"{root}/train.py", at.folder)
            found = _profiled(f"{root}/train.py", case, seconds)
    return Row(plant.name, plant.expected, found.get("verdict") or "none", case.strength, time.monotonic() - begun,
               found.get("findings", []), found.get("facts", {}))  # fmt: skip


def _profiled(script, case, seconds):
    """What `drapps profile` says of a script in a process of its own."""
    command = [sys.executable, "-m", "drapps.cli", "profile", script, "--json", "--seconds", str(seconds)]
    environment = {**os.environ, **CALM, **case.environment}
    done = subprocess.run(command, env=environment, preexec_fn=case.enter, capture_output=True, text=True,
                          timeout=LIMIT)  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return {"verdict": f"failed with {done.returncode}: {last}"}
    return json.loads(done.stdout)


def table(rows):
    """Printed: what was planted, what was found."""
    shown = [(row.name, row.strength, row.verdict, "yes" if row.right else "no",
              ", ".join(f"{found['name']} {found['gain']:.1f}x" for found in row.findings), f"{row.seconds:.0f} s")
             for row in rows]  # fmt: skip
    print_table(("planted", "strength", "verdict", "right", "findings", ("time", "right")), shown)
    print(f"{sum(row.right for row in rows)} of {len(rows)} named")


def main(argv=None):
    """The program."""
    parser = argparse.ArgumentParser(prog="drapps experiment planted", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"which ones (default: all): {', '.join(p.name for p in PLANTS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of measuring, each (default: {SECONDS})")
    parser.add_argument("--json", action="store_true", help="print JSON, with all facts")
    args = parser.parse_args(argv)
    unknown = set(args.names) - {plant.name for plant in PLANTS}
    if unknown:
        parser.error(f"no plant is called {', '.join(sorted(unknown))}")
    rows = run(args.seed, args.names, args.seconds, lambda row: print(row.name, row.verdict, file=sys.stderr))
    if args.json:
        return print_json([{**row._asdict(), "right": row.right} for row in rows])
    table(rows)


if __name__ == "__main__":
    main()
