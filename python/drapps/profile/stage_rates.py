"""The three rates that say what limits training, each measured by itself over a few batches.

    accelerator  the consumer, given the same batch again and again
    fetch        reading samples as they are stored, nothing else
    preprocess   the pipeline over samples that lie on this machine

This is the first stage of SOPHON's profiler: at most 50 batches each.
"""

import math
import tempfile
import time
from typing import NamedTuple

from drapps import _core
from drapps.arguments import Rule, check, ints
from drapps.counted import counted
from drapps.real_number import is_real

KEPT_SHARE = 5  # one batch of so many is fetched a second time, to be kept
KEPT_BYTES = 64 << 20
WARM_UP = 2  # batches that do not count: threads start, connections open
LEAST = 4  # batches of a stage, whatever time they take
BOUNDS = {"accelerator": "accelerator-bound", "fetch": "I/O-bound", "preprocess": "CPU-bound"}
FASTER = 1.05  # what is less than so many times as fast is not told apart
RULES = {
    "step": Rule(lambda value: callable(value) or (is_real(value) and 0 <= value < math.inf),
                 "a function of a batch, or a non-negative number of seconds"),
    "batches": ints(1),
    "seconds": Rule(lambda value: is_real(value) and value > 0, "a positive number"),
}  # fmt: skip


class StageRates(NamedTuple):
    """Samples per second of each stage; inf: a consumer that takes no time."""

    accelerator: float
    fetch: float
    preprocess: float
    batches: dict  # by stage: how many were spent
    bytes: float  # of a sample as it is stored

    @property
    def slowest(self):
        """The stage that limits training.  A tie is not for the network: offload would shorten nothing."""
        rates = {"accelerator": self.accelerator, "preprocess": self.preprocess, "fetch": self.fetch * FASTER}
        return min(rates, key=rates.get)

    @property
    def bound(self):
        """ "accelerator-bound", "I/O-bound" or "CPU-bound"."""
        return BOUNDS[self.slowest]

    @property
    def rate(self):
        """Samples per second to expect of the three together."""
        return min(self.accelerator, self.fetch, self.preprocess)

    @property
    def utilisation(self):
        """The share of its time in which the accelerator works."""
        return self.rate / self.accelerator if math.isfinite(self.accelerator) else 0.0

    def as_dict(self):
        """For JSON."""
        accelerator = self.accelerator if math.isfinite(self.accelerator) else None
        return {**self._asdict(), "accelerator": accelerator, "bound": self.bound, "rate": self.rate,
                "utilisation": self.utilisation}  # fmt: skip

    def verdict(self):
        """One sentence."""
        text = f"{self.bound}: {self.rate:.0f} samples/s to expect"
        if math.isfinite(self.accelerator):
            text += f", the accelerator works {self.utilisation:.0%} of its time"
        return f"{text}; {counted(sum(self.batches.values()), 'batch', 'batches')} were spent"


def measure_stages(pipe, step=0.0, batches=50, seconds=10.0, **options):
    """Return the StageRates of a pipeline without Python functions.

    step: seconds of the accelerator for a batch, or a function that is given a batch.  batches: of each stage, at most.
    seconds: after which a stage ends, too.  options: of the loader.
    """
    check(RULES, {"step": step, "batches": batches, "seconds": seconds})
    if pipe.has_python:
        raise _core.UnsupportedError("the stages of a chain with Python functions cannot be measured one by one: "
                                     "profile the script (drapps profile script.py)")  # fmt: skip
    if not len(pipe):
        raise _core.FormatError(f"{pipe.dataset.name}: has no samples")
    options = {"batch_size": 64, "shuffle": True, "on_bad_sample": "skip", "max_bad": 2**31, **options}
    kept = max(1, batches // KEPT_SHARE)
    as_stored = {**options, "outputs": None, "output": "raw", "collate": {"*": "list"}}
    fetched = _drain(_loader(type(pipe)(pipe.dataset, ()), as_stored), max(batches - kept, 1), seconds)
    with tempfile.TemporaryDirectory(prefix="drapps-stages-") as folder:
        ids = fetched.ids[: max(1, min(kept * options["batch_size"], int(KEPT_BYTES // max(fetched.bytes, 1))))]
        near = _near(pipe, ids, folder)
        made = _drain(_loader(near, options), batches, seconds)
        given, rate = _consume(near, options, step, batches, seconds)
    spent = {"accelerator": given, "fetch": fetched.batches + -(-len(ids) // options["batch_size"]),
             "preprocess": made.batches}  # fmt: skip
    return StageRates(rate, fetched.rate, made.rate, spent, fetched.bytes)


class _Drained(NamedTuple):
    rate: float
    batches: int
    ids: list  # of all samples, each once
    bytes: float  # read, for each sample


def _loader(pipe, options):
    """A loader that reads samples as they are stored, whole."""
    return pipe.loader(**{**options, "offload": "off", "ranges": "off", "cache": None, "policy": "fixed"})


def _drain(loader, most, seconds):
    """Take batches, epoch after epoch, and drop them."""
    marks, ids, begun, empty = [], {}, time.monotonic(), 0
    with loader:
        while len(marks) < most and empty < 2:
            before = len(marks)
            for batch in loader.batches():
                ids.update(dict.fromkeys(batch.ids))
                marks.append((time.monotonic(), len(batch.ids)))
                if len(marks) >= most or (len(marks) >= LEAST and marks[-1][0] > begun + seconds):
                    most = len(marks)
                    break
            empty = empty + 1 if len(marks) == before else 0  # an epoch of bad samples alone
        stats = loader.stats()
    if not ids:
        raise _core.BadSampleError("no sample could be read")
    return _Drained(_rate(begun, marks), len(marks), list(ids), stats["bytes_read"] / max(stats["samples"], 1))


def _rate(begun, marks):
    """Samples per second, without the first batches where there are more."""
    skipped = WARM_UP if len(marks) > 2 * WARM_UP else 0
    since = marks[skipped - 1][0] if skipped else begun
    return sum(n for _, n in marks[skipped:]) / max(marks[-1][0] - since, 1e-9)


def _near(pipe, ids, folder):
    """The pipeline over some samples, packed on this machine as they are."""
    from drapps.plan.materials import subset

    place = f"{folder}/kept"
    few = subset(pipe, ids)
    few.pack(place, upto=0, seek_points=False, check_images=False)
    return few.use(place, check_source=False)


def _consume(pipe, options, step, most, seconds):
    """(batches, samples per second) of a consumer that is given one batch again and again."""
    if not callable(step):
        return 0, options["batch_size"] / step if step else math.inf
    with _loader(pipe, options) as loader:
        batch = next(iter(loader))
        samples = min(options["batch_size"], len(pipe))
        step(batch)
        begun, given = time.monotonic(), 0
        while given < most - 1 and (given < LEAST or time.monotonic() < begun + seconds):
            step(batch)
            given += 1
    return given + 1, given * samples / max(time.monotonic() - begun, 1e-9)
