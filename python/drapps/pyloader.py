"""PythonLoader: batches from a chain with Python functions, which run in worker processes.

Positions of the epoch's order are posted batch by batch, within the prefetch window.  Without a filter, a batch is what
was posted together, and the worker that completes it collates it.  Filters drop samples, so batches of a chain with a
filter are collated here.  In both cases a batch does not depend on the number of workers.  workers=0 runs everything in
the caller, where a breakpoint works.
"""

import threading
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import SimpleNamespace

import numpy

from drapps import _core, output as outputs
from drapps.build_info import info, usual_workers
from drapps.procpool.tuning import Tuning
from drapps.batch import Batch
from drapps.cached import Cache, folder_text, is_marked
from drapps.collate import RULES, check_rules, collate
from drapps.counted import counted
from drapps.procpool.process_pool import MAX_WORKERS
from drapps.procpool.chain_pool import ChainPool, Groups
from drapps.kept_prefix import kept_ops
from drapps.loader import LoaderBase
from drapps.output import from_numpy
from drapps.passes import pass_state as state_checks
from drapps.passes.bad_samples import MAX_BAD
from drapps.passes.cursor import ConsumerTimer, Cursor
from drapps.pipeline import Node, PythonStage
from drapps.sched import check_cpus
from drapps.stages import FOLLOWERS, Group, Maker, SampleRunner, filled
from drapps.stat_keys import with_all_keys

KNOBS = {"workers": range(MAX_WORKERS + 1), "prefetch": range(1, 65)}


class PythonBatch(Batch):
    """A batch made of Python samples."""

    __slots__ = ("_bad", "before")

    def __init__(self, fields, output, bad, ids, **facts):
        super().__init__(SimpleNamespace(ids=ids, samples=len(ids), error=None, **facts), output)
        self._fields = fields
        self._bad = bad
        self.before = None  # the consumer's cursor when it was made

    @property
    def bad(self):
        """Samples that were left out or replaced: dicts with position, id, key, error and action."""
        return self._bad

    def draws(self, i):
        """Raise: random choices are not kept in a chain with Python functions."""
        raise _core.UnsupportedError("draws are not kept in a chain with Python functions")


def refuse_native_settings(settings):
    """Raise for a setting that only loaders without Python functions support."""
    standard = {"keep_draws": False, "trace_spans": 0, "seek_index": "auto", "offload": "auto", "ranges": "auto"}
    for name, value in settings.items():
        if value != standard[name] and (name, value) != ("offload", "off"):
            raise _core.UnsupportedError(f"{name}={value!r} does not work yet in a chain with .map() or .filter()")


class PythonLoader(LoaderBase):
    """Batches from a pipeline with Python functions.

    A filter drops samples and following samples fill the batch, so len() is the largest number of batches of an epoch.
    """

    def __init__(self, pipe, output="auto", *, batch_size, seed, shuffle, workers, prefetch, in_order, last,
                 on_bad_sample, rank, world_size, memory_limit, outputs, collate, layout, reference, lanes, cache,
                 cache_limit, cache_memory=0, adaptive_compression=True,
                 max_bad=MAX_BAD, policy=None, resource_monitor=None,
                 cpu_limit=0, weights=None, trace=None, equal_batches=False, **native):  # fmt: skip
        refuse_native_settings(native)
        if cpu_limit != 0:
            check_cpus(cpu_limit)
        limits = info()["limits"]
        self._pipe = pipe
        self._seed, self._shuffle, self._reference = seed, shuffle, reference
        self._batch_size, self._last, self._rank, self._world = batch_size, last, rank, world_size
        self._on_bad, self._max_bad = on_bad_sample, max_bad
        self._has_filter = any(getattr(stage, "kind", None) == "filter" for stage in pipe.stages)
        self._equal = on_bad_sample == "skip" and (equal_batches or world_size > 1) and not self._has_filter
        self._in_order, self._lanes = in_order, lanes
        wanted = (cache or cache_memory) and not reference
        self._cache = (cache, cache_limit, "", adaptive_compression, None, cache_memory) if wanted else None
        self._outputs = outputs.split(",") if outputs else None
        self._rules = dict(rule.split("=") for rule in collate.split(",")) if collate else {}
        self._layout = layout
        self._controls = Controls(usual_workers(cpu_limit) if workers < 0 else workers, prefetch)
        self._tuning = Tuning(policy, resource_monitor, adaptive_compression, weights, trace,
                                  ("workers",) * (workers >= 0) + ("prefetch",) * (prefetch > 0))  # fmt: skip
        self._cpu_limit = cpu_limit
        self._memory_limit = memory_limit or limits["memory_bytes"] // (4 * limits["local_world"])
        self._check()
        self._pool = self._maker = None
        self._closed = False
        self._work = threading.Lock()  # held by the thread that makes a batch
        self._groups = iter(())  # iterator of groups, one per batch; None: made with the next batch
        self._running_epoch = self._n_bad = 0
        self._ended = {"deaths": 0, "slow_samples": 0}  # totals of pools that were closed
        self._counts = {"samples": 0, "batches": 0, "epochs": 0, "bad_samples": 0, "wait_ns": 0, "step_ns": 0}
        self._timer = ConsumerTimer(self._counts)
        self._cursor = Cursor()
        super().__init__(output)

    def _check(self):
        if not len(self._pipe):
            raise _core.ArgumentError(f"{self._pipe.dataset.name}: has no samples")
        if not 0 <= self._rank < self._world:
            raise _core.ArgumentError(f"rank must be an int from 0 to {self._world - 1}, got {self._rank!r}")
        for what, value, allowed in (
            ("last", self._last, ("partial", "drop", "pad")),
            ("on_bad_sample", self._on_bad, ("raise", "skip", "replace")),
            ("layout", self._layout, ("NCHW", "NHWC")),
            *(("collate", rule, tuple(RULES)) for rule in self._rules.values()),
        ):
            if value not in allowed:
                raise _core.ArgumentError(f"{what} must be {' or '.join(map(repr, allowed))}, got {value!r}")
        if "*" in self._rules:  # which fields vary is not known before the functions have run
            raise _core.UnsupportedError('collate: "*" does not work in a chain with .map() or .filter(): name fields')
        if self._outputs:
            check_rules(self._outputs, self._rules)
        if self._controls.prefetch:
            check_knob("prefetch", self._controls.prefetch)
        self._new_maker()()  # the native segments are checked before anything runs

    def _new_maker(self):
        """Return a function that makes a Maker, in this process or another.  It does not refer to the loader."""
        return partial(new_maker, self._pipe, self._seed, self._shuffle, self._reference, self._cache, self._on_bad,
                       outputs=self._outputs)  # fmt: skip

    def _collate(self):
        """Return the function that collates samples."""
        native = [*(field[0] for field in self._pipe.dataset.fields),
                  *(name for stage in self._pipe.stages if isinstance(stage, Node) for name in stage.out)]  # fmt: skip
        return partial(collated, outputs=self._outputs, native=frozenset(native), rules=self._rules,
                       layout=self._layout)  # fmt: skip

    # --- the order ---

    def _length(self):
        """Return the number of positions of this rank in an epoch."""
        n, step = len(self._pipe), self._world * self._batch_size
        if self._last == "partial":
            return len(range(self._rank, n, self._world))
        return (n // step if self._last == "drop" else -(-n // step)) * self._batch_size

    def _positions(self, cursor):
        """Return the positions that are not delivered yet; padding continues past the end of the order."""
        rank, world = self._rank, self._world
        return (rank + i * world for i in range(cursor.local, self._length()) if i not in cursor.ahead)

    def __len__(self):
        return (self._length() + self._batch_size - 1) // self._batch_size

    # --- groups ---

    def _begin_groups(self):
        """Return an iterator that does not refer to the loader, so that an unreferenced loader ends its processes."""
        epoch, size, positions = self._running_epoch, self._batch_size, self._positions(self._cursor)
        if self._pool:
            self._pool.clear()
        if self._controls.workers == 0:
            self._end_pool()
            maker = self._own_maker()
            return filled((maker.make(epoch, position) for position in positions), size)
        self._open_pool(None if self._has_filter else self._collate())
        batches = iter(lambda: list(islice(positions, size)), [])
        self._tell_begin()
        groups = Groups(self._pool, epoch, batches, self._controls)
        if not self._has_filter:
            return groups
        return filled((outcome for group in groups for outcome in group.outcomes), size)

    def _tell_begin(self):
        """Write the "epoch" event of the trace, as native loaders do."""
        cursor = self._cursor
        self._tuning.tell("start", epoch=self._running_epoch, base=cursor.local * self._world,
                            samples=self._length() - cursor.local - len(cursor.ahead), workers=self._pool.workers,
                            prefetch=self._pool.window.batches)  # fmt: skip

    def _open_pool(self, collate):
        controls, is_new = self._controls, self._pool is None
        if is_new:
            self._pool = ChainPool(self._new_maker(), collate, workers=controls.workers, lanes=self._lanes,
                                     in_order=self._in_order, memory_limit=self._memory_limit,
                                     cpu_limit=self._cpu_limit)  # fmt: skip
        self._pool.window.begin_pass(controls.default_prefetch, override=controls.prefetch, exact=True,
                                     batch_samples=self._batch_size)  # fmt: skip
        if is_new and not self._reference:
            settings = {"batch_size": self._batch_size, "workers": controls.workers}
            self._pool.adapt(self._tuning.of_processes(self._pipe.dataset.name, self._cpu_limit, settings,
                                                          stages=repr(self._pipe)))  # fmt: skip

    def _own_maker(self):
        self._maker = self._maker or self._new_maker()()
        return self._maker

    # --- what LoaderBase asks for ---

    def _start(self, epoch):
        self._go_to(epoch, Cursor())
        with self._work:
            try:
                self._groups = self._begin_groups()
            except BaseException:
                self._end_epoch()
                raise

    def _end_epoch(self):
        """End the epoch and its processes; the state stays at this batch."""
        self._groups = iter(())
        self._end_pool()

    def _go_to(self, epoch, cursor):
        self._check_open()
        with self._work:
            self._running_epoch, self._cursor = epoch, cursor
            self._n_bad, self._controls.given_up = 0, False
            self._timer.stop()
            self._counts["epochs"] += 1
            self._groups = None

    def _next(self, box):
        self._check_open()
        if box:  # a signal interrupted its delivery
            return box[0]
        timer, batch = self._timer, None
        timer.begin_wait()
        try:
            batch = self._next_made(box)
            return batch
        finally:
            timer.end_wait(over=batch is None and not box)

    def _next_made(self, box):
        with self._work:
            try:
                if self._groups is None:
                    self._groups = self._begin_groups()
                return self._make_batch(box)
            except BaseException:
                if not box:
                    self._end_epoch()
                raise

    def _cancel(self):
        self._controls.given_up = True

    def _make_batch(self, box):
        """Return the next batch that has samples, or None."""
        outcomes = []
        for group in self._groups:
            if self._controls.given_up:
                raise _core.CancelledError("the pass was ended")
            self._inspect(group)
            if self._equal and all(outcome.what == "left_out" for outcome in group.outcomes):
                group = self._with_replacement(group)
            outcomes += group.outcomes
            made = sum(outcome.what == "sample" for outcome in group.outcomes)
            if self._last == "drop" and made + self._left_out(group) < self._batch_size:
                break
            if made:
                batch = self._batch(group, outcomes)
                _core.defer_sigint(self._deliver, box, batch, outcomes)
                return batch
        self._bad_list.add_rows([outcome.bad for outcome in outcomes if outcome.bad], self._running_epoch)
        return None

    def _with_replacement(self, group):
        """Return a group without samples with a replacement in its first slot, so that ranks make
        equally many steps."""
        if not group.outcomes:
            return group
        first, *rest = group.outcomes
        other = self._own_maker().replacement(self._running_epoch, first.bad)
        if other.what == "failed":
            raise other.error
        return Group([other._replace(position=first.position, bad=first.bad), *rest])

    def _inspect(self, group):
        for outcome in group.outcomes:
            if outcome.bad:
                self._n_bad += 1
                self._counts["bad_samples"] += 1
                self._tuning.tell("bad", epoch=self._running_epoch, **outcome.bad)
                if self._n_bad > self._max_bad:
                    raise _core.BadSampleError(f"more than max_bad = {self._max_bad} bad samples; the last: "
                                               f"{outcome.bad['error']}")  # fmt: skip
            if outcome.what == "failed":
                raise outcome.error

    def _left_out(self, group):
        return sum(outcome.what == "left_out" for outcome in group.outcomes)

    def _batch(self, group, outcomes):
        """Return the batch of a group.  outcomes: the group's, and those before it that gave no sample."""
        good = [outcome for outcome in group.outcomes if outcome.what == "sample"]
        kind = outputs.choose(self.output)
        fields = group.fields or self._collate()([outcome.sample for outcome in good])
        return PythonBatch({name: _converted(value, kind) for name, value in fields.items()}, kind,
                           [outcome.bad for outcome in outcomes if outcome.bad], [outcome.id for outcome in good],
                           positions=[outcome.position for outcome in good],
                           padded=sum(outcome.position >= len(self._pipe) for outcome in outcomes),
                           number=self._cursor.number, epoch=self._running_epoch)  # fmt: skip

    def _deliver(self, box, batch, outcomes):
        batch.before = self._cursor
        self._cursor = self._cursor.after((outcome.position - self._rank) // self._world for outcome in outcomes)
        self._counts["samples"] += batch.samples
        self._counts["batches"] += 1
        box.append(batch)

    def _configuration(self):
        return {"samples": len(self._pipe), "data": f"{self._pipe.dataset.fingerprint:016x}", "seed": self._seed,
                "shuffle": self._shuffle, "world": self._world,
                "batch_size": self._batch_size, "stages": repr(self._pipe)}  # fmt: skip

    def _native_state(self):
        held = self._held()
        cursor = self._cursor if held is None else held.before
        return {**self._configuration(), "epoch": self._running_epoch, **cursor.state()}

    def _check_inner(self, state):
        for key, mine in self._configuration().items():
            if state.get(key) != mine or type(state.get(key)) is not type(mine):
                raise _core.ArgumentError(f"the state was saved with {key} {state.get(key)!r}, the loader has {mine!r}")
        state_checks.whole(state, "epoch")
        number, local = state_checks.whole(state, "number"), state_checks.whole(state, "local")
        ahead = state_checks.wholes(state, "ahead") if "ahead" in state else ()
        places = -(-len(self._pipe) // self._world)
        if local > places:
            state_checks.wrong("local", f"an int from 0 to {places}", local)
        if any(not local < place < places for place in ahead):
            state_checks.wrong("ahead", f"a list of ints between {local} and {places}", ahead)
        if number > local + len(ahead):
            state_checks.wrong("number", f"an int from 0 to {local + len(ahead)}", number)

    def _restore(self, state):
        self._go_to(state["epoch"], Cursor(state["number"], state["local"], frozenset(state.get("ahead", ()))))

    def _stop(self):
        self._timer.stop()
        self._groups = iter(())
        self._end_pool()
        self._tuning.close()
        self._closed = True

    def _end_pool(self):
        if self._pool:
            self._attach_controller()
            self._ended = self._pool_counts()
            self._pool.close()
        self._pool = None

    def _check_open(self):
        if self._closed:
            raise _core.StateError("the loader is closed")

    # --- looking inside ---

    def stats(self):
        """Return counters since the loader was opened, as a dict; docs/stats.md lists them."""
        self._timer.count()
        self._attach_controller()
        settings = {knob: self.get(knob) for knob in KNOBS}
        tuning = self._tuning.stats(settings)
        tuning["knobs"] |= settings  # the other keys are those of the latest controller; with workers=0 there is none
        return with_all_keys({**self._counts, "delivered_samples": self._counts["samples"], **self._pool_counts(),
                              "epoch": self._running_epoch, **tuning, **settings})  # fmt: skip

    def _pool_counts(self):
        """Return the totals of all pools so far."""
        now = self._pool.stats() if self._pool else {}
        return {name: count + now.get(name, 0) for name, count in self._ended.items()}

    @property
    def policy(self):
        """Return the name of the policy that runs, one of drapps.policies()."""
        return self._tuning.policy_name

    def decisions(self, after=0):
        """Return the last decisions of the policy with numbers above `after`, oldest first: a list
        of drapps.Decision."""
        self._attach_controller()
        return self._tuning.decisions(after)

    def _attach_controller(self):
        if self._pool and self._pool.controller is not None:
            self._tuning.attach(self._pool.controller)

    def explain(self):
        """Return a description of the chain."""
        where = (
            f"in {counted(self._controls.workers, 'process', 'processes')}"
            if self._controls.workers
            else "in the caller"
        )
        order = "in order" if self._in_order else "as they become ready"
        seeded = f"order: shuffled by seed {self._seed} and epoch, the same in every process\n"
        shuffled = seeded if self._shuffle else ""
        return (f"{self._pipe!r}\n{shuffled}{counted(self._batch_size, 'sample')} a batch, {order}, {where}\n"
                f"{self._explain_cache()}")  # fmt: skip

    def _explain_cache(self):
        if self._cache is None:
            return ""
        functions = [stage.function for stage in self._pipe.stages if isinstance(stage, PythonStage)]
        marked = [function.__qualname__ for function in functions if is_marked(function)]
        n = kept_ops(self._pipe.dataset, self._pipe.stages)
        ops = f", and of the ops up to {self._pipe.stages[n - 1].op.name}" if n else ""
        return (f"cache: keeps in {folder_text(self._cache[0])} the results of functions marked as deterministic "
                f"(in the chain: {', '.join(marked) or 'none'}){ops}\n")  # fmt: skip

    def set(self, knob, value):
        """Set a knob while the loader runs: "workers" (0 to 256; a change from or to 0 takes effect with the next
        epoch) or "prefetch" (1 to 64)."""
        check_knob(knob, value)
        setattr(self._controls, knob, int(value))
        self._tuning.pin(knob, int(value))
        if knob == "workers" and self._pool:
            self._pool.resize(int(value) or self._pool.workers)  # the policy no longer changes it
        elif knob == "prefetch" and self._pool:
            self._pool.window.override(int(value))
            if self._pool.controller is not None:
                self._pool.controller.set("prefetch", value)

    def pause(self):
        """Say that what runs inside the `with` block is no training: an evaluation, a checkpoint.

        The policy decides nothing meanwhile and does not take the silence for a slow consumer.  Pauses nest.
        """
        self._attach_controller()
        return self._tuning.pause()

    def set_weights(self, weights):
        """Change what the policy aims for while the loader runs; weights: as for the loader, None: "step"."""
        self._attach_controller()
        self._tuning.set_weights(weights)

    def get(self, knob):
        """Return the value of a knob; of "workers", the running processes, or the setting if no pool runs."""
        if knob not in KNOBS:
            raise _core.NotFoundError(f"knob must be {' or '.join(map(repr, KNOBS))}, got {knob!r}")
        if knob == "workers":
            return self._pool.workers if self._pool else self._controls.workers
        return self._pool.window.batches if self._pool else self._controls.default_prefetch

    def __repr__(self):
        batches = counted(len(self), "batch", "batches")
        return f"<drapps.PythonLoader of {self._pipe!r}: at most {batches} of {self._batch_size}>"


@dataclass
class Controls:
    """Settings that can change while an epoch runs."""

    workers: int
    prefetch: int  # batches in flight; 0: two per worker
    given_up: bool = False  # the pass was ended

    @property
    def default_prefetch(self):
        """The number of batches in flight until a controller decides."""
        return self.prefetch or 2 * max(self.workers, 1)


def check_knob(knob, value):
    """Raise unless the knob can be changed, and to that value."""
    if knob not in KNOBS:
        raise _core.ArgumentError(f"knob must be {' or '.join(map(repr, KNOBS))}, got {knob!r}")
    allowed = KNOBS[knob]
    if value not in allowed:
        raise _core.ArgumentError(f"{knob} must be an int from {allowed[0]} to {allowed[-1]}, got {value!r}")


def new_maker(pipe, seed, shuffle, reference, cache, on_bad, alone=False, outputs=None):
    """Return a Maker of a chain's samples in the calling process.  alone: the process is a worker."""
    return Maker(SampleRunner(pipe, seed, shuffle, reference, cache and Cache(*cache), alone, outputs), on_bad)


def collated(samples, outputs, native, rules, layout):
    """Return the fields of a batch."""
    return collate(samples, outputs or _standard_outputs(samples[0], native), rules, layout)


def _standard_outputs(sample, native):
    """Return the default outputs, as in the library: image, label and the image's annotations, or all fields.

    What functions added, which is not among the `native` fields of data set and ops, is delivered, too.
    """
    if "image" not in sample.fields:
        return list(sample.fields)
    first = [name for name in ("image", "label") if name in sample.fields]
    return first + [name for name in sample.fields
                    if name not in first and (sample.kinds.get(name) in FOLLOWERS or name not in native)]  # fmt: skip


def _converted(value, kind):
    if isinstance(value, list):
        return [v if isinstance(v, (str, bytes)) else from_numpy(numpy.ascontiguousarray(v), kind) for v in value]
    return from_numpy(value, kind)
