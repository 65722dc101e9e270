"""The planner: tries strategies on some samples of a pipeline, and says what they would bring for all.

look      edges, and what cuts are expected to cost (cuts.py, stage_costs.py)
choose    the samples that it is tried with, so that the budget allows it
race      makes materials, checks that they give the same batches, measures epochs (trials.py, racing.py)
reckon    intervals for the whole data set, scores, the choice (extrapolate.py, scoring.py)
"""

import random
import time
from contextlib import ExitStack, nullcontext

from drapps import _core
from drapps.build_info import usual_workers
from drapps.counted import counted
from drapps.plan import expected, extrapolate, page_cache
from drapps.plan.measured_epochs import hash_epoch, open_loader
from drapps.plan.intervals import exactly, pooled_noise, rate_interval
from drapps.packing import native_stages
from drapps.passes.bad_samples import not_logged
from drapps.plan.materials import store_cut, subset
from drapps.plan.outcome import Plan, Row
from drapps.plan.racing import Race
from drapps.plan.scoring import Metrics, Prices, best, check_objective, pareto_front
from drapps.plan.reorder import orders_of, reordered
from drapps.plan.strategies import FILES, MEMORY, PAGE, STORE, Strategy, adds_something, materials_of
from drapps.plan.trials import MEMORY_ROOM, MEMORY_TIMES, WARM_SECONDS, Trials
from drapps.plan.views import View, mean
from drapps.plan.workspace import Workspace, is_in_memory
from drapps.printing import bytes_text
from drapps.profile.offload_line import planned_line

LOOK_SAMPLES = 16
LEAST_SAMPLES, MOST_SAMPLES = 48, 8192
OFFLOAD_SECONDS, OFFLOAD_SHARE = 10.0, 0.2  # of the budget, to see what a loader plans for a drapps server
USED_OF_BUDGET = 0.8
TOO_SLOW = 0.7  # of the speed that was expected: fewer samples are used
EPOCHS_EACH = 5.0  # that an arm costs on average: made, checked, measured once to five times
DISK_SHARE = 0.5  # of what is free, for trying things out
LEAST_MEMORY_SHARE = 0.05  # of the samples: less is not worth a cache
CROWDED = 0.2  # share of the CPUs that other programs use, from which on the plan says so


class Planner:
    """One plan.  Arguments are those of drapps.plan.plan."""

    race = Race  # how strategies are measured against each other

    def __init__(self, pipe, *, budget, objective, options, work, memory, drop_caches, rounds, samples, seed, tell):
        self.pipe, self.given, self.options, self.tell = pipe, options, dict(options), tell
        if isinstance(objective, Prices):
            objective = objective._replace(samples=max(len(pipe), 1))
        self.objective = check_objective(objective)
        self.budget, self.begun = budget, time.monotonic()
        self.rounds, self.most_samples, self.random = rounds, samples or MOST_SAMPLES, random.Random(seed)
        self.drop_caches = drop_caches
        self.workers = options.get("workers") or max(1, usual_workers(0))
        self.room = page_cache.room()
        self.memory = self.room // 2 if memory is None else memory
        self.work_folder = work
        self.notes = []
        self.durations = {}  # of the last measurement of a strategy

    def left(self):
        """Seconds of the budget that are left."""
        return self.begun + self.budget - time.monotonic()

    def run(self):
        """Returns the Plan."""
        if not len(self.pipe):
            raise _core.FormatError(f"{self.pipe.dataset.name}: has no samples")
        if self.pipe.dataset.format == "mix":
            raise _core.UnsupportedError(
                f"{self.pipe.dataset.name}: which samples a mixture has changes each epoch; plan its sources"
            )
        if self.drop_caches and not page_cache.may_drop_everything():
            raise _core.ArgumentError(f"--drop-caches: may not write to {page_cache.EVERYTHING}, which only root may")
        with Workspace(self.work_folder) as self.work, _host() as watch, ExitStack() as stack:
            if self.work.removed:
                self.note(
                    f"{counted(self.work.removed, 'folder')} that an earlier plan had left in {self.work.parent} "
                    "was removed"
                )
            if is_in_memory(self.work.path):
                self.note(f"{self.work.parent} is memory: nothing that was stored there was read from a disk (--work)")
            self._look()
            self._note_offload()
            strategies = self._strategies()
            self._choose_samples(strategies)
            self._check_baseline(len(strategies))
            self.trials = Trials(
                self.subset,
                self.source,
                self.baseline,
                len(self.pipe),
                self.work,
                self._loader_options(),
                room=self.room,
                memory=self.memory,
                memory_bytes=self._memory_bytes,
                drop_caches=self.drop_caches,
                watch=watch,
                stack=stack,
                left=self.left,
                tell=self.tell,
                note=self.note,
            )
            race = self.race(
                self._promising(strategies), self._measure, self._seconds, self.left, self._utilities, self.rounds
            )
            outcome = race.run()
        return self._plan(race, outcome)

    def note(self, text):
        """A line for the reader of the plan."""
        if text not in self.notes:
            self.notes.append(text)

    # --- look ---

    def _look(self):
        places = self.random.sample(range(len(self.pipe)), min(len(self.pipe), LOOK_SAMPLES))
        self.tell(f"looking at {counted(len(places), 'sample')}")
        self.views = {(): View(self.pipe, "", places, max(1.0, 0.1 * self.budget))}
        for why, order in orders_of(self.pipe.stages).items():
            try:
                view = View(reordered(self.pipe, order), why, places, max(1.0, 0.05 * self.budget))
            except _core.Error as error:  # an op does not take what the other one makes
                self.note(
                    f"another order of the ops, for {'a ' * (why == 'longer prefix')}{why}, is not possible: {error}"
                )
                continue
            self.views[tuple(order)] = view
        self.whole = self.views[()].costs[len(self.pipe.stages)]

    def _strategies(self):
        materials, packable = [], self.pipe.dataset.format != "subset"
        if not packable:
            self.note("no shards were tried: selections cannot be packed; pack the whole data set, then select")
        for order, view in self.views.items():
            found = materials_of(
                view.edges,
                view.forms(),
                order,
                len(native_stages(view.pipe)) if packable else -1,
                store_cut(view.pipe, view.edges),
            )
            materials += [
                m for m in found if (adds_something(m, view.why) if order else not self._is_better_reordered(m))
            ]
        return [
            Strategy(m, level) for m in materials for level in (PAGE, MEMORY) if level == PAGE or self._is_for_memory(m)
        ]

    def _is_better_reordered(self, material):
        """Whether another order, for fewer bytes, has the same done beforehand: then that one is tried.  The
        pipeline as it is is always measured."""
        same = (
            order
            for order, view in self.views.items()
            if view.why == "fewer bytes" and set(order[: material.stages]) == set(range(material.stages))
        )
        return material.layout != FILES and any(
            adds_something(material._replace(order=order), "fewer bytes") for order in same
        )

    def _is_for_memory(self, material):
        """Whether samples in memory may pay: something is to be done whose result can be kept.  Of what lies beside
        memory, the files as they are do where all finds room; else also what was done beforehand, but not in every
        codec."""
        cut, needed = self._memory_cut(material), self._memory_bytes(material) * len(self.pipe)
        saves = cut is not None and (cut > material.stages or material.layout == STORE)
        others = material.layout == FILES or (not material.codec and self.memory < needed)
        return saves and others and self.memory >= LEAST_MEMORY_SHARE * needed > 0

    def _memory_cut(self, material):
        view = self.views[material.order]
        return store_cut(view.pipe, view.edges)

    def _memory_bytes(self, material):
        """Bytes of a sample that memory keeps."""
        cut = self._memory_cut(material)
        return mean(self.views[material.order].costs[material.stages if cut is None else cut].bytes)

    def _cost(self, material):
        """What a sample of a material is expected to cost."""
        return self.views[material.order].costs[material.stages]

    # --- choose ---

    def _choose_samples(self, strategies):
        """As many as the budget allows, at random; fewer where the disk has no room."""
        n, each = len(self.pipe), self.whole.seconds / self.workers
        affordable = USED_OF_BUDGET * max(self.left(), 0) / (EPOCHS_EACH * len(strategies) * max(each, 1e-6))
        wanted = int(min(max(affordable, LEAST_SAMPLES), self.most_samples, n))
        stored = sum(mean(self._cost(m).bytes) for m in {s.material for s in strategies} if m.layout != FILES)
        fits = int(DISK_SHARE * self.work.free_bytes() / stored) if stored else wanted
        if fits < min(wanted, LEAST_SAMPLES):
            self.work.check_room(min(wanted, LEAST_SAMPLES) * stored / DISK_SHARE, "trying the strategies")
        self.places = sorted(self.random.sample(range(n), min(wanted, fits)))

    def _loader_options(self):
        return {**self.options, "batch_size": self.batch_size}

    def _check_baseline(self, n_strategies):
        """What the untouched pipeline gives, by which all others are judged.  Samples that cannot be read are left
        out, and some more where an epoch took longer than the budget allows."""
        self.tell("hashing the pipeline's batches")
        self._use(self.places)
        begun = time.monotonic()
        skip = {"on_bad_sample": "skip", "max_bad": len(self.places)}
        with not_logged():
            try:
                batches = self._hash(self.subset, **skip)
            except _core.ArgumentError:  # of unequal shapes, which a program has its own rule for
                self.options["collate"] = self._lists()
                batches = self._hash(self.subset, **skip)
        share = USED_OF_BUDGET * self.left() / (EPOCHS_EACH * n_strategies) / (time.monotonic() - begun)
        bad = {one.index for one in batches.bad}
        if bad:
            self._tell_bad(batches.bad[0], len(bad))
        places = [place for i, place in enumerate(self.places) if i not in bad]
        fewer = max(LEAST_SAMPLES, int(share * len(places)))
        if share < TOO_SLOW and fewer < len(places):
            places = sorted(self.random.sample(places, fewer))
        if len(places) < len(self.places):
            self._use(places)
            batches = self._hash(self.subset)
        self.baseline = batches
        if self.pipe.has_python and self._hash(self.subset).digest != batches.digest:
            raise _core.ArgumentError(
                "the pipeline gives other batches each time, though data, seed and epoch are the same: "
                "a Python function of it depends on something else"
            )

    def _lists(self):
        """Rules of collation by which everything but numbers and texts is delivered as a list."""
        if not self.pipe.has_python:
            return {"*": "list"}
        sample = next(sample for sample in self.subset if sample is not None)
        return {name: "list" for name, value in sample.items() if getattr(value, "ndim", 0)}

    def _use(self, places):
        """Goes on with the samples at these places."""
        self.places, self.subset = places, subset(self.pipe, places)
        self.source = self._source_files()
        self.batch_size = max(1, min(self.options.get("batch_size", 64), len(places) // 8))

    def _tell_bad(self, first, n):
        text = f"{first.name}: {first.error}"
        if n == len(self.places):
            raise _core.BadSampleError(f"{self.pipe.dataset.name}: none of {counted(n, 'sample')} can be read; {text}")
        self.note(f"{counted(n, 'sample')} of {len(self.places)} cannot be read and were left out; {text}")

    def _source_files(self):
        """Files that the samples are read from, where these are on this machine."""
        ids = [_core.order_sample(self.pipe.dataset, 0, 0, False, place)[0] for place in self.places]
        return page_cache.files_of(self.pipe.dataset, ids)

    def _hash(self, pipe, **more):
        with open_loader(pipe, self._loader_options(), **more) as loader:
            return hash_epoch(loader)

    # --- race ---

    def _promising(self, strategies):
        """In the order in which they are tried: by what is expected of them.  What is there already comes first, as all
        others are compared with it."""
        return sorted(
            strategies, key=lambda s: (s.material.layout != FILES or s.cache != PAGE, -self._expected_rate(s))
        )

    def _expected_rate(self, strategy):
        """Samples/s, by what single samples cost and a usual disk."""
        return expected.rate(self._load(strategy), self.workers)

    def _load(self, strategy):
        """What a sample of a strategy is expected to take in an epoch."""
        material, costs = strategy.material, self.views[strategy.material.order].costs
        if strategy.cache == MEMORY:
            return expected.load(costs, self._memory_cut(material), self._memory_bytes(material), "", 1.0)
        size = mean(self._cost(material).bytes)
        found = extrapolate.hits(self.room, size * len(self.pipe)).mid
        return expected.load(costs, material.stages, size, material.codec, found)

    def _seconds(self, strategy):
        """What the next measurement of a strategy takes."""
        if strategy in self.durations:
            return self.durations[strategy]
        n, material = len(self.places), strategy.material
        warm = expected.rate(self._load(strategy)._replace(found=1.0), self.workers)
        cold = expected.rate(self._load(strategy)._replace(found=0.0), self.workers)
        needed = WARM_SECONDS + n / warm + n / cold
        if strategy.cache == MEMORY:
            needed += n * self.whole.seconds / self.workers
        if material in self.trials.made or material.layout == FILES:
            return needed
        storing = expected.storing_seconds(self._cost(material), material.codec, self.workers)
        return needed + n * storing + n / warm  # stored, and hashed

    def _measure(self, strategy, limit):
        begun = time.monotonic()
        rate = self.trials.measure(strategy, limit)
        self.durations[strategy] = time.monotonic() - begun
        return rate

    def _utilities(self, rates, middle):
        metrics, scale = ({name: self._metrics(name, rate) for name, rate in one.items()} for one in (rates, middle))
        return self.objective.scores(metrics, scale)

    def _metrics(self, strategy, rate):
        made, n, whole = self.trials.made[strategy.material], len(self.places), len(self.pipe)
        return Metrics(rate, made.seconds * whole / n, self.trials.storage(strategy.material).mid)

    # --- reckon ---

    def _plan(self, race, outcome):
        trials, noise = self.trials, pooled_noise(self.trials.components.values())
        self._note_others()
        rows = [self._row(strategy, entry, noise) for strategy, entry in race.entries.items() if entry.measured]
        usable = {row.strategy: row.metrics for row in rows if not row.why_not}
        chosen, scores = best(self.objective, usable)
        front = set(pareto_front(usable))
        rows = [row._replace(score=scores.get(row.strategy), front=row.strategy in front) for row in rows]
        refused = {strategy: trials.refused[strategy] for strategy in race.entries if strategy in trials.refused}
        unmeasured = {
            s: trials.over.get(s) or e.why_out or "not measured"
            for s, e in race.entries.items()
            if not e.measured and s not in refused
        }
        facts = {
            "samples": len(self.pipe),
            "measured_samples": len(self.places),
            "budget": self.budget,
            "seconds": time.monotonic() - self.begun,
            "ended": outcome.why,
            "rounds": outcome.rounds,
            "page_cache_bytes": self.room,
            "memory_bytes": self.memory,
            "workers": self.workers,
        }
        return Plan(
            self.pipe,
            self.given,
            self.views[()].edges,
            rows,
            refused,
            unmeasured,
            chosen,
            self.objective,
            trials.measurements,
            self.notes,
            facts,
            race.interrupted,
        )

    def _note_offload(self):
        """A note on what a loader would have a drapps server do; the strategies are tried without."""
        if self.pipe.dataset.format != "drapps" or self.pipe.has_python:
            return
        self.tell("looking at offload")
        line = planned_line(self.pipe, seconds=min(OFFLOAD_SECONDS, OFFLOAD_SHARE * self.budget),
                            collate={"*": "list"}, output="raw", **self.options)  # fmt: skip
        if line:
            self.note(f"samples come as they are stored in all strategies; training would have the server help: {line}")

    def _note_others(self):
        """A note where other programs used the CPUs while epochs were measured."""
        found = [(one.epoch.seconds, (one.epoch.resources.get("cpu_foreign") or 0.0)
                  + (one.epoch.resources.get("cpu_steal") or 0.0)) for one in self.trials.measurements]  # fmt: skip
        seconds = sum(length for length, _ in found)
        used = sum(length * cpus for length, cpus in found) / seconds if seconds else 0.0
        cpus = usual_workers(0)
        if used >= CROWDED * cpus:
            self.note(
                f"other programs used {used:.2g} of {counted(cpus, 'CPU')} while strategies were measured: their "
                "figures are lower, and the intervals wider, than on an idle machine"
            )

    def _row(self, strategy, entry, noise):
        trials, material = self.trials, strategy.material
        made, n, whole = trials.made[material], len(self.places), len(self.pipe)
        cold, warm, memory = (
            rate_interval(trials.components[material, mode], noise) for mode in ("cold", "warm", "memory")
        )
        storage, preparation = trials.storage(material), extrapolate.preparation(made.seconds, n, whole, noise)
        rate, memory_bytes = extrapolate.mixed_interval(trials.found(material), warm, cold), 0
        if strategy.cache == MEMORY:
            rate = extrapolate.mixed_interval(exactly(trials.memory_share(material)), memory, rate)
            memory_bytes = int(min(self.memory, MEMORY_ROOM + MEMORY_TIMES * whole * self._memory_bytes(material)))
        metrics, free, why_not = (
            Metrics(rate.mid, preparation.mid, storage.mid),
            page_cache.free_disk(self.work.parent),
            "",
        )
        if material.layout != FILES and storage.high > free:
            why_not = f"needs up to {bytes_text(storage.high)} of disk, there are {bytes_text(free)}"
        return Row(
            strategy,
            metrics,
            rate,
            preparation,
            storage,
            cold,
            warm,
            memory if memory_bytes else exactly(0.0),
            memory_bytes,
            tuple(entry.values),
            made.cpu_seconds * whole / n,
            why_not,
            entry.why_out,
        )


def _host():
    """Watches the machine, where that is possible."""
    from contextlib import closing

    from drapps.profile.host import Host

    try:
        return closing(Host())
    except _core.Error:
        return nullcontext()
