"""PythonLoader: batches from a chain with Python functions, which run in worker processes.

Positions of the epoch's order are dealt out in small tasks; answers are put back into order, so a batch does not depend
on the number of workers.  workers=0 runs everything in the caller, where a breakpoint works.
"""

import random
import threading
from itertools import islice
from types import SimpleNamespace

import numpy

from drapps import _core, output as outputs
from drapps.about import info
from drapps.batch import Batch
from drapps.cached import Cache
from drapps.collate import RULES, collate
from drapps.loader import LoaderBase
from drapps.output import from_numpy
from drapps.pyworker import WorkerPool, outcome_of
from drapps.stages import SampleRunner

TASKS_AHEAD = 2  # tasks that a worker has at a time: one to work on, one to go on with
TASK_SAMPLES = 8
REPLACE_TRIES = 16
MAX_WORKERS = 256


class PythonBatch(Batch):
    """A batch made of Python samples."""

    __slots__ = ("_bad",)

    def __init__(self, fields, output, bad, ids, **facts):
        super().__init__(SimpleNamespace(ids=ids, samples=len(ids), **facts), output)
        self._fields = fields
        self._bad = bad

    @property
    def bad(self):
        """Samples that were left out or replaced: dicts with position, id, key, error and action."""
        return self._bad

    def draws(self, i):
        """Not kept in a chain with Python functions."""
        raise _core.UnsupportedError("draws are not kept in a chain with Python functions")


def refuse_native_settings(settings):
    """Raises on a setting that only a loader without Python functions can follow."""
    standard = {"prefetch": 0, "in_order": True, "memory_limit": 0, "keep_draws": False, "trace": None,
                "seek_index": "auto"}  # fmt: skip
    for name, value in settings.items():
        if value != standard[name]:
            raise _core.UnsupportedError(f"{name}={value!r} does not work yet in a chain with .map() or .filter()")


class PythonLoader(LoaderBase):
    """Batches from a pipeline with Python functions.

    A filter drops samples and the following ones fill the batch, so len() is the most that an epoch can have.
    """

    def __init__(self, pipe, output="auto", *, batch_size, seed, shuffle, workers, last, on_bad_sample, rank, world,
                 outputs, collate, layout, reference, cache=None, cache_limit=0, max_bad=2**64 - 1, **native):  # fmt: skip
        refuse_native_settings(native)
        self._pipe = pipe
        self._seed, self._shuffle, self._reference = seed, shuffle, reference
        self._batch_size, self._last, self._rank, self._world = batch_size, last, rank, world
        self._on_bad, self._max_bad = on_bad_sample, max_bad
        self._cache = (cache, cache_limit) if cache else None
        self._outputs = outputs.split(",") if outputs else None
        self._rules = dict(rule.split("=") for rule in collate.split(",")) if collate else {}
        self._layout = layout
        self._workers = info()["limits"]["workers"] if workers < 0 else workers
        self._check()
        self._pool = self._runner = None
        self._closed = False
        self._work = threading.Lock()  # one thread at a time makes a batch
        self._stream = iter(())
        self._running_epoch = self._n_bad = 0
        self._cancelled = False
        self._counts = {"samples": 0, "batches": 0, "epochs": 0, "bad_samples": 0}
        self._local = self._number = 0  # place of the rank's stream, and number of the batch, that come next
        super().__init__(output)

    def _check(self):
        if self._batch_size < 1:
            raise _core.ArgumentError(f"batch_size is {self._batch_size}, must be at least 1")
        if not 0 <= self._rank < self._world:
            raise _core.ArgumentError(f"rank is {self._rank}, allowed are 0 to {self._world - 1}")
        for what, value, allowed in (
            ("last", self._last, ("partial", "drop", "pad")),
            ("on_bad_sample", self._on_bad, ("raise", "skip", "replace")),
            ("layout", self._layout, ("NCHW", "NHWC")),
            *(("collate", rule, tuple(RULES)) for rule in self._rules.values()),
        ):
            if value not in allowed:
                raise _core.ArgumentError(f"{what}={value!r}: allowed are {', '.join(allowed)}")
        self._make_runner()  # the native segments are checked before anything runs

    def _make_runner(self):
        cache = self._cache and not self._reference and Cache(*self._cache)
        return SampleRunner(self._pipe, self._seed, self._shuffle, self._reference, cache or None)

    # --- the order ---

    def _length(self):
        """Positions of this rank's stream in an epoch."""
        n, step = len(self._pipe), self._world * self._batch_size
        if self._last == "partial":
            return len(range(self._rank, n, self._world))
        return (n // step if self._last == "drop" else -(-n // step)) * self._batch_size

    def _positions(self, start):
        """Positions of the order from a place of this rank's stream on; padding goes on past the end."""
        return (self._rank + i * self._world for i in range(start, self._length()))

    def __len__(self):
        return -(-self._length() // self._batch_size)

    # --- outcomes, in order ---

    def _outcomes(self, epoch, start):
        positions = self._positions(start)
        if self._workers == 0:
            return (outcome_of(self._own_runner(), epoch, position) for position in positions)
        if self._pool and len(self._pool.workers) != self._workers:
            self._end_pool()
        if self._pool is None:
            self._pool = WorkerPool(self._workers, self._make_runner)
        return in_order(self._pool, epoch, positions, min(TASK_SAMPLES, self._batch_size))

    def _own_runner(self):
        self._runner = self._runner or self._make_runner()
        return self._runner

    def _replacement(self, epoch, outcome):
        """A good sample in place of a bad one, chosen by the seed."""
        choice = random.Random(f"{self._seed}/{epoch}/{outcome.position}")
        for _ in range(REPLACE_TRIES):
            other = outcome_of(self._own_runner(), epoch, choice.randrange(len(self._pipe)))
            if other.what in ("sample", "failed"):
                return other
        raise _core.BadSampleError(f"{outcome.key}: {outcome.error}; found no sample to take its place")

    # --- what LoaderBase asks for ---

    def _start(self, epoch, local=0, number=0):
        self._check_open()
        with self._work:
            self._running_epoch, self._local, self._number = epoch, local, number
            self._n_bad, self._cancelled = 0, False
            self._counts["epochs"] += 1
            self._stream = self._outcomes(epoch, local)

    def _next(self):
        self._check_open()
        with self._work:
            try:
                return self._make_batch()
            except BaseException:
                self._stream = iter(())  # the epoch ends here; the state stays at this batch
                self._end_pool()
                raise

    def _cancel(self):
        self._cancelled = True

    def _make_batch(self):
        samples, positions, bad, local = [], [], [], self._local
        for outcome in self._stream:
            if self._cancelled:
                raise _core.CancelledError("the pass was given up")
            local += 1
            if outcome.what == "bad":
                outcome = self._handle_bad(outcome, bad)
            if outcome.what == "failed":
                raise outcome.error
            if outcome.what == "sample":
                samples.append(outcome.sample)
                positions.append(outcome.position)
            if len(samples) + self._left_out(bad) == self._batch_size:
                break
        if not samples or (self._last == "drop" and len(samples) + self._left_out(bad) < self._batch_size):
            return None
        return self._batch(samples, positions, bad, local)

    def _handle_bad(self, outcome, bad):
        self._n_bad += 1
        self._counts["bad_samples"] += 1
        text = str(outcome.error)
        if self._on_bad == "raise":
            raise outcome.error
        if self._n_bad > self._max_bad:
            raise _core.BadSampleError(f"{self._n_bad} bad samples, allowed are {self._max_bad}; the last: {text}")
        action = {"skip": "skipped", "replace": "replaced"}[self._on_bad]
        bad.append({"position": outcome.position, "id": outcome.id, "key": outcome.key, "error": text,
                    "action": action})  # fmt: skip
        if self._on_bad == "replace":
            return self._replacement(self._running_epoch, outcome)._replace(position=outcome.position)
        return outcome

    def _left_out(self, bad):
        return len(bad) if self._on_bad == "skip" else 0

    def _batch(self, samples, positions, bad, local):
        names = self._outputs or _standard_outputs(samples[0].fields)
        kind = outputs.choose(self.output)
        fields = {name: _converted(value, kind)
                  for name, value in collate(samples, names, self._rules, self._layout).items()}  # fmt: skip
        repeats = range(self._local, local)
        padded = sum(self._rank + i * self._world >= len(self._pipe) for i in repeats)
        batch = PythonBatch(fields, kind, bad, [sample.id for sample in samples], positions=positions, padded=padded,
                            number=self._number, epoch=self._running_epoch)  # fmt: skip
        self._local, self._number = local, self._number + 1
        self._counts["samples"] += len(samples)
        self._counts["batches"] += 1
        return batch

    def _configuration(self):
        return {"samples": len(self._pipe), "seed": self._seed, "shuffle": self._shuffle, "world": self._world,
                "batch_size": self._batch_size, "stages": repr(self._pipe)}  # fmt: skip

    def _native_state(self):
        return {**self._configuration(), "epoch": self._running_epoch, "local": self._local, "number": self._number}

    def _restore(self, state):
        for key, mine in self._configuration().items():
            if state.get(key) != mine:
                raise _core.ArgumentError(f"the state was saved with {key} {state.get(key)!r}, the loader has {mine!r}")
        self._start(state["epoch"], state["local"], state["number"])

    def _stop(self):
        self._stream = iter(())
        self._end_pool()
        self._closed = True

    def _end_pool(self):
        if self._pool:
            self._pool.end()
        self._pool = None

    def _check_open(self):
        if self._closed:
            raise _core.StateError("the loader is closed")

    # --- looking inside ---

    def stats(self):
        """Counters since the loader was opened, as a dict; docs/stats.md lists them."""
        return {**self._counts, "workers": self._workers, "epoch": self._running_epoch}

    def explain(self):
        """The chain, in words."""
        where = f"in {self._workers} processes" if self._workers else "in the caller"
        return f"{self._pipe!r}\n{self._batch_size} samples a batch, {where}\n"

    def set(self, knob, value):
        """Changes "workers" from the next epoch on."""
        if knob != "workers" or value != int(value) or not 0 <= value <= MAX_WORKERS:
            raise _core.ArgumentError(f'{knob}={value}: allowed is "workers", 0 to {MAX_WORKERS}')
        self._workers = int(value)

    def get(self, knob):
        """The value of a setting: "workers"."""
        if knob != "workers":
            raise _core.NotFoundError(f'no setting "{knob}"; there is "workers"')
        return self._workers

    def __repr__(self):
        return f"<drapps.PythonLoader of {self._pipe!r}: at most {len(self)} batches of {self._batch_size}>"


def in_order(pool, epoch, positions, task_samples):
    """The outcomes of positions, in their order, worked on by all workers."""
    pool.drain()
    tasks = iter(lambda: list(islice(positions, task_samples)), [])
    sent, told, waiting = 0, 0, {}
    while True:
        while (worker := pool.free(TASKS_AHEAD)) and (task := next(tasks, None)):
            worker.send(sent, epoch, task)
            sent += 1
        if told == sent:
            return
        while told not in waiting:
            waiting.update(pool.answers())
        yield from waiting.pop(told)
        told += 1


def _standard_outputs(fields):
    return ["image", "label"] if {"image", "label"} <= set(fields) else list(fields)


def _converted(value, kind):
    if isinstance(value, list):
        return [v if isinstance(v, (str, bytes)) else from_numpy(numpy.ascontiguousarray(v), kind) for v in value]
    return from_numpy(value, kind)
