"""Fourteen planted bottlenecks and two healthy runs: each is a function that makes a Case in a Field.

Strength and place are random by the field's seed.  `at.undo` ends the conditions around the program; a remedy does so,
too, unless it says otherwise.
"""

import os
import tarfile
from typing import NamedTuple

from benchmarks.experiments import pictures
from benchmarks.experiments.disk_limit import disk_limit
from benchmarks.experiments.disturb import Quota, burning
from benchmarks.experiments.planted_case import IMPORT, LIMIT, TORCH_SCRIPT, TORCHS_OWN_SCRIPT, Case, Remedy


class Plant(NamedTuple):
    """A row of the table: the expected verdict, and the function that makes the case."""

    name: str
    expected: str
    make: object  # (Field) -> Case
    where: str = ""  # the name that the verdict must have


IN_MEMORY = Remedy("files in memory")  # reads are not limited, and no files are dropped from the page cache


def slow_disk(at):
    """A disk with few bytes per second."""
    pictures.write_pictures(at.folder, 300, 640, at.random.randrange(1 << 30), quality=95)
    speed = at.between(4e6, 16e6)
    case = Case(settings={"batch_size": 8, "workers": 2}, step="accelerator(0.004)",
                strength=f"{speed / 1e6:.1f} MB/s", remedies=[IN_MEMORY])  # fmt: skip
    case.enter = at.undo.enter_context(disk_limit(at.folder, "bps", int(speed)))
    at.undo.enter_context(pictures.forgotten(at.folder))
    return case


def small_files(at):
    """Files of a few KB on a disk with a few thousand reads per second."""
    side, finds = at.between(48, 96), at.between(1000, 3000)
    pictures.write_pictures(at.folder, 12000, int(side), at.random.randrange(1 << 30))
    case = Case(".decode().resize(64).center_crop(48)", {"batch_size": 64, "workers": 2}, "accelerator(0.002)",
                strength=f"side {side:.0f}, {finds:.0f} reads/s",
                remedies=[Remedy("shards in memory", lambda facts: _packed(at), gone=False), IN_MEMORY])  # fmt: skip
    case.enter = at.undo.enter_context(disk_limit(at.folder, "iops", int(finds)))
    at.undo.enter_context(pictures.forgotten(at.folder))
    return case


def _packed(at):
    """Pack the files into an archive on the same disk, which is in memory as it was just written."""
    path = f"{at.root}/all.tar"
    with tarfile.open(path, "w") as shard:
        for name in sorted(os.listdir(at.folder)):
            shard.add(f"{at.folder}/{name}", name)
    os.sync()
    return {"data": path}


def slow_source(at):
    """A delay for each read."""
    at.usual()
    delay = at.between(3e-3, 15e-3)
    return Case(settings={"batch_size": 16, "workers": 2}, step="accelerator(0.004)",
                environment={"DRAPPS_READ_DELAY_US": str(int(delay * 1e6))},
                strength=f"{delay * 1e3:.1f} ms a read", remedies=[Remedy("no delay")])  # fmt: skip


def slow_op(at):
    """An op or a Python function that costs more than all others."""
    at.usual()
    ops = ["decode()", "random_resized_crop(160)", "random_horizontal_flip()", "color_jitter(brightness=0.2)"]
    size, turns = at.random.choice([45, 61, 75]), at.random.randint(4, 10)
    blur = f"gaussian_blur(kernel_size={size}, sigma=[{size / 6:.1f}, {size / 6:.1f}])"
    slow, strength = at.random.choice([(blur, blur), ("map(arranged, field='image')", f"{turns} turns of a function")])
    place = at.random.randint(1, len(ops))
    chain = [*ops[:place], slow, *ops[place:]]
    return Case(_chain(chain), {"batch_size": 16, "workers": 2}, "accelerator(0.002)", turns=turns,
                strength=f"{strength} after {ops[place - 1]}",
                remedies=[Remedy("without it", lambda facts: {"chain": _chain(ops)})])  # fmt: skip


def _chain(ops):
    return "." + ".".join(ops)


def slow_samples(at):
    """Some pictures are huge."""
    at.usual(360)
    share, side = at.between(0.05, 0.12), int(at.between(2000, 3200))
    pictures.write_pictures(at.folder, int(360 * share / (1 - share)), side, at.random.randrange(1 << 30), first=360)
    return Case(settings={"batch_size": 16, "workers": 2}, step="accelerator(0.001)",
                strength=f"{share:.0%} of side {side}",
                remedies=[Remedy("without them", lambda facts: _without(at.folder, 360))])  # fmt: skip


def _without(folder, first):
    """Return a folder without the files from a number on."""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".jpg") and int(name[:-4]) >= first:
            os.remove(f"{folder}/{name}")
    return {}


def starved_cpu(at):
    """Another program that uses the CPUs."""
    at.usual()
    threads = at.random.randint(1, 2) * len(os.sched_getaffinity(0))
    case = Case(settings={"batch_size": 32, "workers": 2}, strength=f"{threads} threads",
                remedies=[Remedy("CPUs alone")])  # fmt: skip
    case.step = f"accelerator({0.4 * at.batch_seconds(case):.4f})"
    at.undo.enter_context(burning(threads, LIMIT))
    return case


def throttled_quota(at):
    """A container with a fraction of a CPU."""
    at.usual()
    quota = at.between(0.3, 0.8)
    case = Case(settings={"batch_size": 32, "workers": 2}, strength=f"{quota:.2f} CPUs", remedies=[Remedy("no quota")])
    case.step = f"accelerator({0.2 * at.batch_seconds(case):.4f})"
    group = Quota()
    at.undo.callback(group.close)
    group.set(quota)
    case.enter = lambda: group.add(os.getpid())
    return case


def slow_consumer(at):
    """A consumer that is far slower than the loader."""
    at.usual()
    times = at.between(5, 12)
    case = Case(settings={"batch_size": 32, "workers": 2}, strength=f"{times:.1f} times the loader",
                remedies=[Remedy("no step", lambda facts: {"step": "pass"})])  # fmt: skip
    case.step = f"accelerator({times * at.batch_seconds(case):.4f})"
    return case


def memory_limit(at):
    """Memory for one batch, and a consumer that pauses: the loader has no room to work during a pause."""
    at.usual()
    room, every, times = at.random.uniform(1.1, 1.6), at.random.randint(5, 9), at.random.uniform(1.05, 1.3)
    case = Case(settings={"batch_size": at.random.choice([32, 48, 64]), "workers": 2, "prefetch": every + 2},
                strength=f"{room:.1f} batches, a pause every {every}")  # fmt: skip
    case.step = f"pausing({every}, {every * times * at.batch_seconds(case):.4f})"
    batch_bytes, ample = case.settings["batch_size"] * 160 * 160 * 3, dict(case.settings)
    case.settings["memory_limit"] = int(2 * room * batch_bytes)  # half of it is for batches
    case.remedies = [Remedy("no limit", lambda facts: {"settings": ample})]
    return case


def oversubscribed_workers(at):
    """Many workers on few CPUs, and a consumer that uses a CPU a little longer per batch than a worker."""
    at.usual()
    cpus = len(os.sched_getaffinity(0))
    workers, times = at.random.randint(12, 20) * cpus, at.between(1.1, 1.25) * cpus
    case = Case(settings={"batch_size": 32, "prefetch": 4},
                strength=f"{workers} workers, consumer {times:.1f} times the loader")  # fmt: skip
    case.step = f"on_cpu({times * at.batch_seconds(case, cpus):.4f})"
    case.settings["workers"] = workers
    case.remedies = [Remedy("workers as told", lambda facts: {"settings": _fewer(case.settings, facts, cpus)})]
    return case


def _fewer(settings, facts, otherwise):
    """Return the settings with the number of workers that `drapps profile` advises."""
    return {**settings, "workers": facts.get("fewer_workers") or otherwise}


def _waiting(at, dataset, **options):
    """A data set of torch whose Python code waits some milliseconds per sample."""
    delay = at.between(2e-3, 8e-3)
    settings = {"batch_size": 16, "num_workers": 2, **options}
    return Case(dataset, settings, "accelerator(0.002)", script=TORCH_SCRIPT, turns=round(delay, 5),
                strength=f"{delay * 1e3:.1f} ms a sample", remedies=[Remedy("no wait", lambda facts: {"turns": 0})])


def sleeping_transform(at):
    """A transform that sleeps."""
    return _waiting(at, "Numbers(Slow())")


def lock_in_data_set(at):
    """A lock that the workers share."""
    return _waiting(at, "Locked()")


def slow_collate(at):
    """A collate function that sleeps."""
    case = _waiting(at, "Numbers()")
    case.settings["collate_fn"] = Named("slow_collate")
    return case


def torch_loader(at):
    """torch's DataLoader makes batches in Python that drapps makes natively."""
    side = int(at.between(200, 420))
    at.usual(side=side)
    drapps_script = TORCHS_OWN_SCRIPT.replace(IMPORT, "from drapps import DataLoader")
    return Case("transforms.RandomResizedCrop(160), transforms.RandomHorizontalFlip()",
                {"batch_size": 16, "num_workers": 2}, "accelerator(0.002)", script=TORCHS_OWN_SCRIPT, data=at.root,
                strength=f"pictures of side {side}",
                remedies=[Remedy("drapps.DataLoader", lambda facts: {"script": drapps_script})])  # fmt: skip


class Named(str):
    """A name in the script, as opposed to a text."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


def _consumer_bound(at, low, high):
    at.usual()
    times = at.random.uniform(low, high)
    case = Case(settings={"batch_size": 32, "workers": 2, "prefetch": 4}, strength=f"{times:.2f} times the loader")
    case.step = f"accelerator({times * at.batch_seconds(case):.4f})"
    return case


def healthy(at):
    """The consumer is slightly slower than the loader."""
    return _consumer_bound(at, 1.6, 2.2)


def balanced(at):
    """Consumer and loader are equally fast."""
    return _consumer_bound(at, 1.1, 1.3)


PLANTS = (
    *(Plant(make.__name__, make.__name__, make)
      for make in (slow_disk, slow_op, starved_cpu, slow_consumer, small_files, slow_samples, memory_limit,
                   throttled_quota, slow_source, oversubscribed_workers)),
    Plant("sleeping_transform", "waiting_code", sleeping_transform, "Slow.__call__"),
    Plant("lock_in_data_set", "waiting_code", lock_in_data_set, "Locked.__getitem__"),
    Plant("slow_collate", "waiting_code", slow_collate, "slow_collate"),
    Plant("torch_loader", "torch_loader", torch_loader, "drapps.DataLoader in its place"),
    Plant("healthy", "healthy", healthy), Plant("balanced", "healthy", balanced),
)  # fmt: skip
