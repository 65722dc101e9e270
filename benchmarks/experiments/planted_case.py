"""A planted case: a training script, the conditions around it, and its run under `drapps profile`."""

import json
import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from benchmarks.experiments import pictures

LIMIT = 120  # seconds that a run may take
CALM = {"DRAPPS_POLICY": "off", "DRAPPS_SEEK_INDEX": "memory"}  # the script's settings stay fixed; no files are left

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


# A data set of torch that waits in a transform, under a lock in the data set, or in collate_fn.
TORCH_SCRIPT = """
import contextlib
import multiprocessing
import time
import torch
import drapps

def accelerator(seconds):
    time.sleep(seconds)

class Slow:
    def __call__(self, x):
        time.sleep({turns})
        return x

class Numbers(torch.utils.data.Dataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 4000

    def __getitem__(self, i):
        x = torch.full((3, 64, 64), float(i))
        return x if self.transform is None else self.transform(x)

class Locked(Numbers):
    lock = multiprocessing.Lock()

    def __getitem__(self, i):
        with self.lock:
            time.sleep({turns})
        return super().__getitem__(i)

def slow_collate(samples):
    time.sleep({turns} * len(samples))
    return torch.stack(samples)

loader = drapps.DataLoader({chain}, shuffle=True, {settings})
while True:
    for batch in loader:
        {step}
"""

# The usual script: torchvision's ImageFolder in torch's own DataLoader.
IMPORT = "from torch.utils.data import DataLoader"
TORCHS_OWN_SCRIPT = f"""
import time
from drapps.bench.standins import import_torchvision
import_torchvision()
from torchvision import datasets, transforms
{IMPORT}
""" + """
def accelerator(seconds):
    time.sleep(seconds)

chain = transforms.Compose([{chain}, transforms.ToTensor()])
loader = DataLoader(datasets.ImageFolder({folder!r}, chain), shuffle=True, {settings})
while True:
    for batch in loader:
        {step}
"""


class Remedy(NamedTuple):
    """A remedy against a plant."""

    name: str  # for the table
    change: object = None  # (facts of the run) -> {attribute of the case: value}; None: the script stays
    gone: bool = True  # whether the conditions around the program are removed


@dataclass
class Case:
    """The case that a plant makes: a script, and the conditions around it."""

    chain: str = ".decode().random_resized_crop(160).random_horizontal_flip()"
    settings: dict = field(default_factory=dict)
    step: str = "pass"
    environment: dict = field(default_factory=dict)
    enter: object = None  # called in the child before exec
    turns: float = 1  # rounds of the chain's Python function; in a data set of torch the seconds that code waits
    script: str = SCRIPT
    data: str = ""  # the data; "": the field's folder
    strength: str = ""  # for the table
    remedies: list = field(default_factory=list, compare=False)

    def remedied(self, remedy, facts):
        """Return the case after a remedy."""
        calm = {"enter": None, "environment": {}} if remedy.gone else {}
        changed = remedy.change(facts) if remedy.change else {}
        return replace(self, **calm, **changed)

    def write(self, path, folder):
        """Write the script."""
        folder = self.data or folder
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        with open(path, "w") as file:
            file.write(self.script.format(folder=folder, chain=self.chain, settings=settings, step=self.step,
                                          turns=self.turns))


class Field:
    """The environment of a plant: a folder, random numbers, and conditions to undo."""

    def __init__(self, root, seed, name):
        self.root, self.folder = root, f"{root}/data"
        self.random = random.Random(f"{seed}/{name}")
        self.undo = ExitStack()
        os.makedirs(self.folder, exist_ok=True)

    def usual(self, n=400, side=320):
        """Write pictures of the usual size."""
        pictures.write_pictures(self.folder, n, side, self.random.randrange(1 << 30))

    def between(self, low, high):
        """Return a random strength, uniform on a logarithmic scale."""
        return low * (high / low) ** self.random.random()

    def batch_seconds(self, case, workers=2):
        """Return the loader's time for a batch of the case, measured here without its conditions."""
        from drapps.pipeline import read

        pipe = eval(f"source{case.chain}", {"source": read(self.folder)})  # the plant's own text
        settings = {**case.settings, "workers": workers, "memory_limit": 0}
        with pipe.loader(shuffle=True, outputs="image", output="raw", **settings) as loader:
            return min(_drain(loader) for _ in range(3))

    def profiled(self, case, seconds):
        """Return the result of `drapps profile` on the case."""
        script = f"{self.root}/train.py"
        case.write(script, self.folder)
        return _profiled(script, case, seconds)


def _drain(loader):
    """Return the seconds per batch, over an epoch of at most a second."""
    begun, made = time.monotonic(), 0
    for _ in loader:
        made += 1
        if time.monotonic() > begun + 1:
            break
    return (time.monotonic() - begun) / made


def _profiled(script, case, seconds):
    """Return the result of `drapps profile` on the script, run in its own process."""
    command = [sys.executable, "-m", "drapps.cli", "profile", script, "--json", "--seconds", str(seconds)]
    environment = {**os.environ, **CALM, **case.environment}
    try:
        done = subprocess.run(command, env=environment, preexec_fn=case.enter, capture_output=True, text=True,
                              timeout=LIMIT)  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"verdict": f"failed: no end after {LIMIT} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return {"verdict": f"failed with {done.returncode}: {last}"}
    return json.loads(done.stdout)
