"""Trials: materials made of some samples, checked and measured.

A strategy that keeps samples in memory reads its material in the first epoch, in which the memory is filled; it is
checked and measured in later ones.
"""

from collections import defaultdict
from contextlib import contextmanager
from itertools import count

from drapps import _core
from drapps.plan import extrapolate, page_cache
from drapps.plan.materials import make
from drapps.plan.measured_epochs import hash_epoch, open_loader, run_epoch
from drapps.plan.outcome import Measurement
from drapps.plan.strategies import FILES, MEMORY, PAGE, Strategy

WARM_SECONDS = 0.25  # of an epoch from memory, at least: short ones are repeated
MEMORY_ROOM = 16 << 20  # bytes of a cache in memory beside its samples'
MEMORY_TIMES = 1.5  # the bytes of its samples: what it may take for them


class Refused(Exception):
    """A strategy cannot be offered; its text says why."""


class OverBudget(Exception):
    """Making a material took longer than the budget allows."""


class Trials:
    """What was made and measured of the samples of a pipeline.

    pipe: the samples.  source: files that they are read from.  baseline: the Batches that every strategy must give.
    population: samples of the whole data set.  room, memory: bytes of the page cache, and for samples in memory.
    memory_bytes(material): bytes of a sample that memory would keep.
    """

    def __init__(
        self,
        pipe,
        source,
        baseline,
        population,
        work,
        options,
        *,
        room,
        memory,
        memory_bytes,
        drop_caches,
        watch,
        stack,
        left,
        tell,
        note,
    ):
        self.pipe, self.source, self.baseline, self.population = pipe, source, baseline, population
        self.work, self.options, self.room, self.memory, self.memory_bytes = work, options, room, memory, memory_bytes
        self.drop_caches, self.watch, self.stack, self.left, self.tell, self.note = (
            drop_caches,
            watch,
            stack,
            left,
            tell,
            note,
        )
        self.samples = len(pipe)
        self.made, self.refused, self.over = {}, {}, {}  # Made, or why not, by material or strategy
        self.components = defaultdict(list)  # (material, mode): rates
        self.measurements = []
        self._numbers, self._loaders = count(), {}

    def measure(self, strategy, limit):
        """One round of a strategy: samples/s as it would be with the whole data set; None: it is refused."""
        try:
            self._make(strategy.material)
            if strategy.cache == MEMORY:
                return self._memory_round(strategy, limit)
            return self._page_round(strategy, limit)
        except Refused as error:
            self.refused[strategy] = str(error)
        except OverBudget as error:
            self.over[strategy] = str(error)
        return None

    # --- making ---

    def _make(self, material):
        """Makes and checks a material, once."""
        if material in self.refused:
            raise Refused(self.refused[material])
        if material in self.made:
            return
        self.tell(f"making: {material.name}")
        folder = self.work.folder(f"material-{next(self._numbers)}")
        page_cache.drop(self.source)
        try:
            self.made[material] = make(material, self.pipe, self.source, folder, self.options, self._check_time)
            with self._loader(material) as loader:
                why = self._difference(loader)
        except (_core.Error, OSError) as error:
            why = f"cannot be made: {error}"
        if why:
            self.refused[material] = why
            raise Refused(why)

    def _check_time(self):
        if self.left() <= 0:
            raise OverBudget("not measured: storing its samples took longer than the budget allows")

    def _difference(self, loader):
        """Why its batches are not those of the untouched pipeline; "": they are."""
        batches = hash_epoch(loader)
        if batches.digest == self.baseline.digest:
            return ""
        pairs = enumerate(zip(batches.each, self.baseline.each))
        where = next((f"batch {i} differs" for i, (a, b) in pairs if a != b), "its epoch has another number of batches")
        return f"gives other samples than the pipeline: {where}"

    @contextmanager
    def _loader(self, material):
        """A loader over a material.  Of the samples as they are it stays open, as what it has learnt of them (where
        the rows of JPEGs begin) is nowhere else."""
        if material.layout == FILES:
            yield self._kept_open(material, {})
            return
        made = self.made[material]
        with open_loader(made.pipe, self.options, **made.options) as loader:
            yield loader

    def _kept_open(self, key, more):
        material = getattr(key, "material", key)
        if key not in self._loaders:
            made = self.made[material]
            self._loaders[key] = self.stack.enter_context(open_loader(made.pipe, self.options, **made.options, **more))
        return self._loaders[key]

    # --- measuring ---

    def _page_round(self, strategy, limit):
        """From disk and page cache, as far as the whole data set would find room there."""
        found = self.found(strategy.material).mid
        rates = {}
        with self._loader(strategy.material) as loader:
            if found < 1 or not self.components[strategy.material, "cold"]:
                rates["cold"] = self._epoch(strategy, loader, "cold", limit)
            if found > 0:
                rates["warm"] = self._epoch(strategy, loader, "warm", limit)
        return extrapolate.mixed(found, rates.get("warm", 0.0), rates.get("cold", 0.0))

    def _memory_round(self, strategy, limit):
        """From memory, as far as there is room for the samples of the whole data set; the others from disk."""
        is_new, why = strategy not in self._loaders, ""
        limits = {"cache_memory": int(MEMORY_ROOM + MEMORY_TIMES * self.samples * self.memory_bytes(strategy.material))}
        try:
            loader = self._kept_open(strategy, limits)
            if is_new:
                self.tell(f"filling: {strategy.name}")
                run_epoch(loader, self.baseline.samples)
                why = self._difference(loader)
        except (_core.Error, OSError) as error:
            why = f"cannot be kept in memory: {error}"
        if why:
            raise Refused(why)
        rate, found = self._epoch(strategy, loader, "memory", limit), self.memory_share(strategy.material)
        if found >= 1:
            return rate
        return extrapolate.mixed(found, rate, self._page_round(Strategy(strategy.material, PAGE), 0.0))

    def _epoch(self, strategy, loader, mode, limit):
        """Samples/s of one epoch; mode: "cold", nothing of it is in the page cache, "warm" or "memory"."""
        self.tell(f"measuring: {strategy.name}, {mode}")
        files = self.made[strategy.material].files
        if mode == "cold" and (files or self.drop_caches) and not page_cache.drop(files, self.drop_caches):
            self.note("some files could not be dropped from the page cache")
        epoch = run_epoch(loader, self.baseline.samples, limit, self.watch, 0.0 if mode == "cold" else WARM_SECONDS)
        rates = self.components[strategy.material, mode]
        rates.append(epoch.rate)
        self.measurements.append(Measurement(strategy, mode, len(rates), epoch))
        return epoch.rate

    # --- the whole data set ---

    def storage(self, material):
        """Interval of the bytes of the whole data set."""
        return extrapolate.storage(self.made[material], self.samples, self.population)

    def found(self, material):
        """Interval of the share of the whole data set that the page cache holds."""
        return extrapolate.hits(self.room, self.storage(material).mid)

    def memory_share(self, material):
        """The share of the whole data set that is kept in memory: the order is known, so that none gives way too
        early.
        """
        needed = self.memory_bytes(material) * self.population
        return min(1.0, self.memory / needed) if needed else 1.0
