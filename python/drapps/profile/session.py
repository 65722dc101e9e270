"""Session: the phases of the run of one loader, and the facts they give."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import cycle

from drapps import _core
from drapps.profile.facts import Facts
from drapps.profile.offload_line import line_of
from drapps.profile.probe import alone, collate_cost, probe_of, settings_of, waits_in
from drapps.profile.swap import Swap

KEPT = 4  # batches for the free phase
TRIES = 2  # at two phases that agree
LESS = 0.9  # of the rate as it is: a consumer that never waits does not fall below that by itself
OTHERS = 0.15  # of the CPUs: by so much others' use may change between phases that are compared
MANY = 2  # workers for a CPU: from there on fewer are tried
MUCH = 0.3  # of the time: what takes that may be what holds the run back, and the loader is tried without it
FEW = (8, 64)  # samples that are read again and again, at least and at most
STOPWATCH_SAMPLES = 64


class Measured(BaseException):
    """Ends the program when enough is measured.  A BaseException, so that `except Exception` does not catch it."""


@dataclass
class Plan:
    """The seconds of each phase.  A phase has at least a few batches, so slow loaders take longer."""

    warm_up: float = 2.0
    as_is: float = 4.0
    free: float = 1.5
    fewer: float = 2.0
    probe: float = 1.5  # each

    @classmethod
    def of(cls, seconds):
        """Return phases that take `seconds` together."""
        part = seconds / 14
        return cls(2 * part, 4 * part, 1.5 * part, 2 * part, 1.5 * part)


class Tally:
    """The consumer's waits and steps in a phase.  The first `settle` seconds do not count.  least: batches needed."""

    def __init__(self, name, seconds, settle=0.0, least=4):
        self.name, self.seconds, self.settle, self.least = name, seconds, settle, least
        self.wait = self.step = 0.0
        self.batches = self.samples = 0
        self.begun = self.counting = None  # since when

    def over(self, now):
        """Return whether the phase is over; slow consumers or loaders get three times as long for a few batches."""
        if self.counting is None:
            return False
        passed = now - self.counting
        return passed >= self.seconds and (self.batches >= self.least or passed >= 3 * self.seconds)

    def settled(self, now):
        """Return whether batches count now."""
        self.begun = now if self.begun is None else self.begun
        return now - self.begun >= self.settle

    def add(self, wait, step, samples):
        """Add a batch with its wait and its step."""
        self.wait, self.step = self.wait + wait, self.step + step
        self.batches, self.samples = self.batches + 1, self.samples + samples

    @property
    def time(self):
        """The sum of waits and steps."""
        return self.wait + self.step

    @property
    def rate(self):
        """The samples per second."""
        return self.rate_of(self.samples / self.batches) if self.batches else None

    def rate_of(self, batch_samples):
        """Return the rate if batches had `batch_samples` samples: stored batches lack the smaller
        last one of an epoch."""
        return batch_samples * self.batches / self.time if self.time else None


class Session:
    """The session of a loader, or of several with the same data and settings.  Iterators call take() for a batch."""

    def __init__(self, watch):
        self._watch, self._host, self._plan = watch, watch.host, watch.plan
        self.loader = self._engine = None  # the current loader, and the object with its statistics
        self._before = {}  # the statistics when the phase began
        self._kept, self._again = [], iter(())  # batches for the free phase
        self._seen = {}  # the machine in each phase, by name
        self._swap = None  # drapps.DataLoader in place of torch's
        self._pending = None  # the batch that the consumer holds: since when, wait, samples
        self._offload = ""  # what the loader said of a drapps server
        self._phases = self._all_phases()
        self._cpus, self._host_cpus = self._host.cpus()
        self.time, self.finished, self.gave_again = 0.0, False, False
        self.as_is, self.facts = Tally("as is", self._plan.as_is), Facts()
        self._phase = next(self._phases)

    # --- the phases ---

    def _all_phases(self):
        yield Tally("warm up", self._plan.warm_up)
        yield from self._compared_phases()
        if self._too_many():
            yield from self._fewer_phases()
        if self.loader in self._watch.torchs:
            yield from self._swapped_phase()

    def _compared_phases(self):
        """The phases "as it is" and "free", which are only useful together.

        They are repeated if the load of the machine changed between them; if that does not help, "free" is not used.
        """
        why = ""
        for _ in range(TRIES):
            yield self.as_is
            yield Tally("free", self._plan.free, settle=0.3 * self._plan.free)
            before, why = why, self._disagreement()
            if not why:
                break
            self.facts.free_rate = self.facts.free_cpu = None
            self.as_is = Tally("as is", self._plan.as_is)
        if why:
            self.facts.notes.append(f"the load changed in each measurement: {why}; the possible rate of the consumer "
                                    "is estimated from its steps")  # fmt: skip
        elif before:
            self.facts.notes.append(f"measured twice, as the load changed the first time: {before}")

    def _disagreement(self):
        if self.facts.free_rate and self.facts.free_rate < LESS * self.facts.rate:
            return (f"the consumer took {self.facts.rate:.0f} samples/s, then {self.facts.free_rate:.0f} with batches "
                    "at hand")  # fmt: skip
        return self._others_changed("free")

    def _others_changed(self, name):
        """Return how the CPU use of other programs differs between "as it is" and another phase; "": hardly."""
        return others_changed(self._seen["as is"], self._seen[name], OTHERS * self._host_cpus)

    def _too_many(self):
        workers = settings_of(self._engine)["workers"] or 0
        return workers >= MANY * self._cpus and workers > 1 and hasattr(self.loader, "get")

    def _swapped_phase(self):
        """The phase in which drapps.DataLoader makes the batches, with the same arguments.  Failures are only noted."""
        with self._watch.resting():
            try:
                self._swap = Swap(*self._watch.torchs[self.loader])
            except Exception as error:
                self._give_up_swap(error)
                return
        yield Tally("swapped", self._plan.as_is, settle=self._plan.warm_up)
        if self._swap is not None:
            self._swap.close()

    def _give_up_swap(self, error):
        self._swap = None
        self.facts.notes.append(f"drapps.DataLoader was not measured in its place: {type(error).__name__}: {error}")

    def _fewer_phases(self):
        """The phases with one worker per CPU, and per CPU that the consumer leaves idle."""
        consumer = (self.facts.free_cpu or 0.0) * (self.facts.free_rate or 0.0)
        before = self.loader.get("workers")
        for n in sorted({max(1, round(self._cpus)), max(1, round(self._cpus - consumer))}):
            self._fewer = n
            if self._set_workers(n):
                yield Tally("fewer", self._plan.fewer, settle=0.3 * self._plan.fewer)
        self._set_workers(before)

    def _set_workers(self, n):
        """Set the number of workers; return False if the loader cannot change it while it runs."""
        with suppress(_core.Error):
            self.loader.set("workers", n)
            return True
        return False

    def use(self, loader):
        """Set the loader that the program iterates now."""
        self.loader = loader
        if self._phase.name == "fewer" and not self.finished:
            self._set_workers(self._fewer)

    def take(self, iterator):
        """Return the next batch of the program; in the free phase one that it had before."""
        if self.finished:
            return next(iterator)
        begun = time.monotonic()
        self._note_step(begun)
        if self._phase.over(begun):
            self._advance(iterator)
            begun = time.monotonic()
        self._find_engine(iterator)
        self._begin_counting(begun)
        try:
            batch = self._next(iterator)
        except BaseException:
            self._pending = None
            raise
        ended = time.monotonic()
        self._pending = ended, ended - begun, samples_of(batch)
        if self._phase is self.as_is:
            self._kept = [*self._kept[-KEPT + 1 :], batch]
        return batch

    def _next(self, iterator):
        """Return a batch from the source of the phase."""
        if self._phase.name == "free" and self._kept:
            self.gave_again = True
            return next(self._again)
        if self._phase.name == "swapped" and self._swap is not None:
            self.gave_again = True
            try:
                with self._watch.resting():
                    return next(self._swap)
            except Exception as error:
                self._give_up_swap(error)
        return next(iterator)

    def _note_step(self, now):
        """Record the end of the step on the previous batch."""
        if self._pending is None:
            return
        taken, wait, samples = self._pending
        self._pending = None
        self.time += wait + now - taken
        if self._phase.counting is not None:
            self._phase.add(wait, now - taken, samples)

    def _find_engine(self, iterator):
        """Find the object with the statistics; the counters of a newly opened loader begin at 0."""
        engine = getattr(iterator, "_native", None) or self.loader
        if engine is not self._engine:
            self._engine, self._before = engine, {}

    def _begin_counting(self, now):
        if self._phase.counting is None and self._phase.settled(now):
            self._phase.counting = now
            self._before = self._stats()
            self._mark = self._host.mark()

    # --- from one phase to the next ---

    def _advance(self, iterator):
        """End the phase: record its facts, then begin the next phase or end the run."""
        seen = self._seen[self._phase.name] = self._host.since(self._mark)
        getattr(self, "_end_of_" + self._phase.name.replace(" ", "_"))(seen)
        self._again = cycle(self._kept)
        self._phase = next(self._phases, None)
        if self._phase is None:
            self._end(iterator)

    def _end_of_warm_up(self, seen):
        pass

    def _end_of_as_is(self, seen):
        self._note_run()
        self._note_host(seen)

    def _end_of_free(self, seen):
        self.facts.free_rate = self._phase.rate_of(self.facts.batch_samples)
        if seen["cpu_seconds"] is not None and self._phase.samples:
            self.facts.free_cpu = seen["cpu_seconds"] / self._phase.samples

    def _end_of_fewer(self, seen):
        """Record the better number of workers."""
        if self._phase.rate and self._phase.rate > (self.facts.fewer_rate or 0.0):
            self.facts.fewer_workers, self.facts.fewer_rate = self._fewer, self._phase.rate
            self.facts.fewer_delayed = seen["delayed"]

    def _end_of_swapped(self, seen):
        if self._swap is not None:
            self.facts.swapped_rate, self.facts.swapped_wait = self._phase.rate, self._phase.wait / self._phase.time
            self.facts.swapped_native = self._swap.native
            if why := self._others_changed("swapped"):
                self.facts.notes.append(f"between torch's DataLoader and drapps' in its place the load changed: {why}")

    def _end(self, iterator):
        """Run the probes while the consumer pauses, then end the program if this is its main thread."""
        self.finished, self._kept = True, []
        self._phase = self.as_is
        with self._watch.resting():
            self._probe(iterator)
        if self._watch.stop and threading.current_thread() is threading.main_thread():
            raise Measured

    # --- facts ---

    def _stats(self):
        with suppress(Exception):  # the loader is closed, or has no statistics
            return self._engine.stats()
        return {}

    def result(self):
        """Return the facts, possibly incomplete if the program ended early."""
        if not self.facts.batches:
            self._note_run()
            if self.as_is.counting is not None:
                self._note_host(self._host.since(self._mark))
        if self._offload and self._offload not in self.facts.notes:
            self.facts.notes.append(self._offload)
        return self.facts

    def _note_run(self):
        facts, run = self.facts, self.as_is
        facts.seconds, facts.batches, facts.samples = run.time, run.batches, run.samples
        facts.cpus, facts.host_cpus = self._cpus, self._host_cpus
        for name, value in settings_of(self._engine).items():
            setattr(facts, name, value)
        if run.batches:
            facts.wait, facts.step = run.wait / run.time, run.step / run.batches
        with suppress(Exception):  # the loader is closed
            self._offload = line_of(self._engine)
        self._note_stats(self._stats())

    def _note_stats(self, now):
        """Record the growth of the loader's counters.  Only native loaders have them; others have None."""
        if now.get("read_ns") is None or not self.as_is.batches:
            return
        keys = ("samples", "bytes_read", "read_ns", "work_ns")
        grown = {key: now[key] - (self._before.get(key) or 0) for key in keys}
        if grown["samples"] > 0:
            self.facts.bytes = grown["bytes_read"] / grown["samples"]
            self.facts.read = grown["read_ns"] / grown["samples"] * 1e-9
            self.facts.work = grown["work_ns"] / grown["samples"] * 1e-9

    def _note_host(self, seen):
        for name in ("cpu_own", "cpu_foreign", "cpu_steal", "delayed", "throttled", "disk_busy", "disk_latency"):
            setattr(self.facts, name, seen[name])
        if seen["device_bytes"] is not None and self.facts.samples:
            self.facts.device_bytes = seen["device_bytes"] / self.facts.samples

    def _probe(self, iterator):
        try:
            probe = probe_of(self.loader, iterator, self._watch.opened)
            if probe is not None:
                self._try(probe)
        except Exception as error:  # the facts of the run itself are still useful
            self.facts.notes.append(f"no further runs: {type(error).__name__}: {error}")

    def _try(self, probe):
        facts = self.facts
        facts.files, facts.remote = probe.files, probe.remote
        costs, usual = alone(probe, self._plan.probe)
        for name, value in costs.items():
            setattr(facts, name, value)
        if probe.is_python:
            whole, cpu = collate_cost(probe)
            facts.blocked = max(0.0, facts.again - facts.again_cpu) + max(0.0, whole - cpu)
            facts.blocked_in = waits_in(probe, self._plan.probe)
        facts.ops = probe.ops(STOPWATCH_SAMPLES)
        settings = {"workers": facts.workers or 1, "prefetch": facts.prefetch or 2}
        if probe.drain is not None:
            self._drain(probe, usual, settings)
        self._drain_without_largest_op(probe, settings)

    def _drain(self, probe, usual, settings):
        """Run the loader without a consumer: unchanged, and without each possible limit."""
        facts, drain = self.facts, partial(probe.drain, self._plan.probe, **settings)
        drained = drain()
        facts.drain_rate, facts.drain_cpu = drained.rate, drained.cpu
        wanted = max(2, settings["prefetch"])
        if facts.ahead is not None and facts.ahead < wanted:
            facts.unlimited_rate = drain(prefetch=wanted, memory_limit=0).rate
        if (facts.read_share or 0.0) >= MUCH:
            few = min(max(FEW[0], probe.batch_size), FEW[1])
            facts.memory_rate = drain(ids=usual[:few]).steady_rate
        if facts.slow_load >= MUCH:
            facts.usual_rate = drain(ids=usual).rate

    def _drain_without_largest_op(self, probe, settings):
        op, share = self.facts.largest_op
        if share < MUCH:
            return
        with suppress(_core.Error):  # other ops may need its result
            lighter = probe.without(op)
            if lighter is not None:
                drained = lighter.drain(self._plan.probe, **settings)
                self.facts.lighter_rate, self.facts.lighter_cpu = drained.rate, drained.cpu


def others_changed(first, second, slack):
    """Return how other programs' use of the CPUs changed between two phases; "": by at most `slack` CPUs.

    CPUs that this program freed, or took, do not count as a change by others.
    """
    before, after = ((seen["cpu_foreign"] or 0.0) + (seen["cpu_steal"] or 0.0) for seen in (first, second))
    released = (first["cpu_own"] or 0.0) - (second["cpu_own"] or 0.0)
    more = after - before
    passed_on = min(abs(more), abs(released)) if more * released > 0 else 0.0
    return f"other programs used {before:.2f} CPUs, then {after:.2f}" if abs(more) - passed_on > slack else ""


def samples_of(batch):
    """Return the number of samples of a batch, from its first part; 1 if unknown."""
    known = getattr(batch, "ids", None)
    if known is not None:
        return len(known)
    while isinstance(batch, (tuple, list, dict)) and batch:
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    shape = getattr(batch, "shape", None)
    return int(shape[0]) if shape else 1
