"""Probes: extra runs over the same data, with single samples and with the loader without a consumer.

They do not use the script's loader, which therefore loses no batch.
"""

import json
import random
import statistics
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import cycle, islice

from drapps import _core
from drapps.procpool.worker_loop import Delay, profile_waits
from drapps.optable import graph_json
from drapps.profile.host import cpu_delay

SLOW_TIMES = 4  # times the median, as the threshold of the lanes
MAX_ALONE = 256
FILE_FORMATS = ("folder", "flat", "list")  # formats in which each sample is a file


class Drained:
    """A run of a loader without a consumer.  marks: (time, samples so far) before the first batch and after each."""

    def __init__(self, marks, cpu):
        self._marks = marks
        self.rate, self.cpu = _rate(marks[0], marks[-1]), cpu / marks[-1][1]

    @property
    def steady_rate(self):
        """Return the median rate over eighths of the batches, so that a few that waited for bytes do not count."""
        part = max(4, (len(self._marks) - 1) // 8)  # batches may come two at a time
        rates = list(map(_rate, self._marks[::part], self._marks[part::part]))
        return statistics.median(rates) if rates else self.rate


def _rate(begin, end):
    return (end[1] - begin[1]) / (end[0] - begin[0])


def probe_of(loader, iterator, opened):
    """Return the probe of a loader, or None.  opened: arguments of native loaders, by loader."""
    native = loader if loader in opened else getattr(iterator, "_native", None)
    if native in opened:
        return NativeProbe(*opened[native])
    if hasattr(loader, "_own_maker"):
        return ChainProbe(loader)
    if hasattr(getattr(loader, "dataset", None), "__getitem__") and not getattr(loader, "_dataset_kind", 0):
        return ItemsProbe(loader)
    return None


# --- measurements of every probe ---


def alone(probe, seconds):
    """Return (facts, ids that are not slow) of single samples made in this thread.

    Each sample is made twice in a row, the second time from memory.
    """
    first, again = [], {}
    end = time.monotonic() + seconds
    for i in random.Random(0).sample(range(probe.size), min(probe.size, MAX_ALONE)):
        first.append(_timed(probe.make, i))
        again[i] = _timed(probe.make, i)
        if time.monotonic() > end and len(first) >= 8:
            break
    slow = _slow(again)
    facts = {**_means("alone", first), **_means("again", again.values()), **_slow_facts(probe, again, slow)}
    return facts, [i for i in again if i not in slow]


def _timed(make, i):
    """Return (time, CPU time) of a sample, without waiting for a CPU.  Bad samples count, too."""
    delay, begun, cpu = cpu_delay(), time.monotonic(), time.thread_time()
    with suppress(Exception):
        make(i)
    cpu, whole = time.thread_time() - cpu, time.monotonic() - begun
    return max(cpu, whole - (cpu_delay() - delay)), cpu


def collate_cost(probe):
    """Return (time, CPU time) per sample of collating a batch, without waiting for a CPU; zeros if
    it cannot be tried."""
    with suppress(Exception):
        probe.collate()
        whole, cpu = _timed(lambda _: probe.collate(), 0)
        return whole / len(probe._batch), cpu / len(probe._batch)
    return 0.0, 0.0


def _means(name, costs):
    whole, cpu = (statistics.fmean(column) for column in zip(*costs))
    return {name: whole, f"{name}_cpu": min(cpu, whole)}


def _slow(costs):
    """Return the samples that cost far more than the median."""
    limit = SLOW_TIMES * statistics.median(whole for whole, _ in costs.values())
    return {i for i, (whole, _) in costs.items() if whole >= limit}


def _slow_facts(probe, costs, slow):
    """Return the facts about slow samples: their number, and their share of the time."""
    times = {i: whole for i, (whole, _) in costs.items()}
    key = probe.key(max(slow, key=times.get)) if slow else ""
    return {"slow_samples": len(slow) / len(times), "slow_load": sum(times[i] for i in slow) / sum(times.values()),
            "slow_key": key}  # fmt: skip


def waits_in(probe, seconds, samples=32):
    """Return the function in which Python code of a probe is blocked most; "" if it hardly is."""
    delay, places, end = Delay(), Counter(), time.monotonic() + seconds
    try:
        for i in range(min(samples, probe.size)):
            with suppress(Exception):
                places += profile_waits(probe.make, i, delay=delay)
            if time.monotonic() > end:
                break
        places += profile_waits(probe.collate, delay=delay)
    finally:
        delay.close()
    return places.most_common(1)[0][0] if places else ""


def shares(times):
    """Return {name: share} of {name: time}."""
    total = sum(times.values())
    return {name: value / total for name, value in times.items()} if total else {}


class Stopwatch:
    """Sums the time of calls, by name."""

    def __init__(self):
        self.times = {}

    def wrap(self, name, function):
        """Return the function with a timer; nested calls count for the outermost function."""

        def timed(*args, **options):
            begun = time.monotonic()
            try:
                return function(*args, **options)
            finally:
                self.times[name] = self.times.get(name, 0.0) + time.monotonic() - begun

        return timed


# --- native pipelines ---


class NativeProbe:
    """A native pipeline, opened a second time with the same settings."""

    is_python = False

    def __init__(self, dataset, graph, options):
        self._dataset, self._graph, self._options = dataset, graph, options
        self.size, self.batch_size = dataset.size, options["batch_size"]
        names = options.get("outputs") or ",".join(field[0] for field in dataset.fields)
        self._runner = _core.open_runner(dataset, graph, names, bool(options.get("reference")))
        self.files = dataset.format in FILE_FORMATS
        self.remote = "://" in dataset.name

    def make(self, i):
        """Make one sample."""
        self._runner.run(0, 0, i, 0)

    def key(self, i):
        """Its name."""
        return self._dataset.key(i)

    def ops(self, samples):
        """Return the share of each op, run unfused."""
        with self._open(workers=0, pushed_order=False) as loader:
            facts = loader.profile(samples)
        times = {"read": facts["read_us"], "store": facts["store_us"]}
        for op in facts["ops"]:
            times[op["op"]] = times.get(op["op"], 0.0) + op["us"]
        self._shaping = {op["op"] for op in facts["ops"] if op["in_bytes"] != op["out_bytes"]}
        return shares(times)

    def without(self, op):
        """Return the pipeline without an op.

        None if that is a different task: the op is not in the graph, or decides the size of samples.
        """
        nodes = json.loads(self._graph.json())["nodes"]
        left = [node for node in nodes if node["op"] != op]
        if op in self._shaping or len(left) == len(nodes):
            return None
        return NativeProbe(self._dataset, _core.graph_from_json(graph_json(left)), self._options)

    def drain(self, seconds, ids=None, **changed):
        """Make batches for some seconds and drop them.  ids: use only these samples, and read them beforehand."""
        order = list(ids or range(self.size))
        random.Random(1).shuffle(order)
        rounds = 1 + (-(-len(ids) // self.batch_size) if ids else 0)
        push = partial(_push, cycle(order), self.batch_size)
        with self._open(pushed_order=True, **changed) as loader:
            batches = loader.batches()
            for _ in range(changed["prefetch"] + 2):
                push(loader)
            for _ in range(rounds):  # the first batch waits for threads to start
                next(batches)
                push(loader)
            return _drained(batches, partial(push, loader), seconds)

    def _open(self, **changed):
        from drapps.loader import Loader

        options = {**self._options, "cache": None, "trace": None, "shuffle": False, "rank": 0, "world_size": 1,
                   "last": "partial", **changed}  # fmt: skip
        if "policy" in options:
            options["policy"] = "fixed"
        return Loader(self._dataset, self._graph, output="raw", **options)


def _push(order, size, loader):
    loader.push(list(islice(order, size)))


def _drained(batches, push, seconds):
    cpu, marks = time.process_time(), [(time.monotonic(), 0)]
    while marks[-1][0] < marks[0][0] + seconds or marks[-1][1] == 0:
        push()
        made = len(next(batches).ids)
        marks.append((time.monotonic(), marks[-1][1] + made))
    return Drained(marks, time.process_time() - cpu)


# --- Python functions ---


class ChainProbe:
    """A chain with Python functions, run in this process."""

    is_python = True
    drain = None
    files = remote = None

    def __init__(self, loader):
        self._loader = loader
        self._maker = loader._new_maker()()
        self.size = len(loader._pipe)

    def make(self, i):
        """Make the sample at a position."""
        self._maker.make(0, i)

    def collate(self):
        """Return None: collating is native."""

    def key(self, i):
        """Its name."""
        return self._maker.name(0, i)

    def ops(self, samples):
        """Return the share of each stage; the native ops before a function count as one stage."""
        maker, watch = self._loader._new_maker()(), Stopwatch()
        runner = maker._runner
        runner.first = _Timed(runner.first, watch, "read and native ops")
        runner.rest = [_timed_stage(part, watch) for part in runner.rest]
        for i in range(min(samples, self.size)):
            maker.make(0, i)
        return shares(watch.times)

    def without(self, function):
        """Return the chain without a Python function if the rest is native, else None."""
        pipe, stages = self._loader._pipe, self._loader._pipe.stages
        left = [stage for stage in stages if _name_of(stage) != function]
        if len(left) == len(stages) or any(hasattr(stage, "function") for stage in left):
            return None
        outputs = ",".join(self._loader._outputs) if self._loader._outputs else None
        graph = _core.graph_from_json(graph_json([node.to_json() for node in left]))
        return NativeProbe(pipe.dataset, graph, {"batch_size": self._loader._batch_size, "outputs": outputs,
                                                 "policy": "fixed"})  # fmt: skip


class _Timed:
    """A runner with a timer."""

    def __init__(self, runner, watch, name):
        self.run = watch.wrap(name, runner.run)


def _name_of(stage):
    """Return the name of a Python function in the chain; None for a native op."""
    return f"{stage.kind}({getattr(stage.function, '__name__', 'function')})" if hasattr(stage, "function") else None


def _timed_stage(part, watch):
    if hasattr(part, "function"):
        return part._replace(function=watch.wrap(_name_of(part), part.function))
    part.run = watch.wrap(", ".join(node.op.name for node in part.nodes), part.run)
    return part


class ItemsProbe:
    """A data set of torch: its items are made and collated in this process."""

    is_python = True
    drain = None
    files = remote = None

    def __init__(self, loader):
        self._dataset = loader.dataset
        self.size = len(self._dataset)
        self._collate_fn, self.batch_size = loader.collate_fn, loader.batch_size or 1
        self._batch = None  # samples for collate()

    def collate(self):
        """Collate one batch, of the same samples each time."""
        if self._batch is None:
            self._batch = [self._dataset[i % self.size] for i in range(min(self.batch_size, MAX_ALONE))]
        self._collate_fn(list(self._batch))

    def make(self, i):
        """Make one item."""
        self._dataset[i]

    def key(self, i):
        """Its index."""
        return f"index {i}"

    def ops(self, samples):
        """Return the share of each transform, if the data set has a chain of them; the rest counts for the data set."""
        steps = getattr(getattr(self._dataset, "transform", None), "transforms", None)
        watch = Stopwatch()
        make = watch.wrap("", self.make)
        kept = list(steps) if isinstance(steps, list) else []
        try:
            for k, step in enumerate(kept):
                steps[k] = watch.wrap(type(step).__name__, step)
            for i in range(min(samples, self.size)):
                with suppress(Exception):
                    make(i)
        finally:
            if kept:
                steps[:] = kept
        whole = watch.times.pop("", 0.0)
        rest = max(0.0, whole - sum(watch.times.values()))
        return shares(
            {f"{type(self._dataset).__name__}.__getitem__": rest, **watch.times, **self._collate_time(samples)}
        )

    def _collate_time(self, samples):
        """Return {name: time} of collating `samples` samples."""
        with suppress(Exception):
            self.collate()
            begun = time.monotonic()
            self.collate()
            each = (time.monotonic() - begun) / len(self._batch)
            return {getattr(self._collate_fn, "__name__", "collate_fn"): each * min(samples, self.size)}
        return {}

    def without(self, name):
        """Return None: a user's data set cannot be run without a part of it."""
        return None


def settings_of(loader):
    """Return workers, prefetch and the number of batches that fit, as far as the loader has them."""
    stats = {}
    with suppress(Exception):
        stats = loader.stats()
    fit = stats.get("batch_bytes") and stats["batch_budget_bytes"] // stats["batch_bytes"]
    readers = stats.get("knobs", {}).get("readers")
    workers = stats.get("workers", getattr(loader, "num_workers", None))  # torch's has no statistics
    return {"workers": workers, "readers": readers, "prefetch": stats.get("prefetch"),
            "ahead": fit or None}  # fmt: skip
