"""What each cut is expected to cost, from a few samples that are made one by one in this process.

Good enough to say what is promising; what counts is measured with a loader.  Stages are not fused here.
"""

import statistics
import time
import zlib
from contextlib import suppress
from typing import NamedTuple

from drapps.pipeline import Pipeline
from drapps.plan.strategies import Form
from drapps.stages import BAD_DATA, SampleRunner

PROBE_BYTES = 1 << 18  # of a field, for finding out whether it can be compressed
SMALLER = 0.9
LOOKED_AT = 4  # samples of which the form is probed, and the fewest that are timed
# What files of images, sound and archives begin with, and at which byte: these are compressed already.
COMPRESSED = (
    (0, b"\xff\xd8\xff"),
    (0, b"\x89PNG"),
    (8, b"WEBP"),
    (0, b"GIF8"),
    (0, b"\x1f\x8b"),
    (0, b"PK\3\4"),
    (0, b"fLaC"),
    (0, b"ID3"),
    (0, b"\xff\xfb"),
    (0, b"OggS"),
    (0, b"\x28\xb5\x2f\xfd"),
    (4, b"ftyp"),
)


class CutCost(NamedTuple):
    """Of one sample, on average."""

    seconds: float  # of one CPU, to read it and carry out the stages before the cut
    bytes: list  # of the fields at the cut, of each sample
    form: Form


def fit_to_stand(stages):
    """Whether stages can be run one sample at a time: no op works on whole batches."""
    from drapps.optable import TABLE

    return not any(hasattr(stage, "op") and "batch" in TABLE[stage.op.name]["flags"] for stage in stages)


def cut_costs(pipe, cuts, places, seconds=5.0):
    """{cut: CutCost} of the pipeline's samples at these places, as far as the time allows; the whole pipeline is the
    cut len(pipe.stages), without what works on whole batches."""
    whole = len(pipe.stages)
    while whole and not fit_to_stand(pipe.stages[:whole]):
        whole -= 1
    wanted = {cut: min(cut, whole) for cut in cuts}
    runners = {
        cut: SampleRunner(Pipeline(pipe.dataset, pipe.stages[:cut]), 0, False, False) for cut in set(wanted.values())
    }
    times, sizes, forms, end = (
        {cut: [] for cut in runners},
        {cut: [] for cut in runners},
        {},
        time.monotonic() + seconds,
    )
    for place in places:
        for cut, runner in runners.items():
            begun = time.thread_time()
            with suppress(*BAD_DATA):  # the sample cannot be read
                sample = runner.run(0, place)
                if sample is None:  # a filter dropped it
                    continue
                times[cut].append(time.thread_time() - begun)
                sizes[cut].append(sample_bytes(sample))
                if len(sizes[cut]) <= LOOKED_AT:
                    forms[cut] = merged(forms.get(cut), form_of(sample))
        if time.monotonic() > end and len(times[max(times)]) >= LOOKED_AT:
            break
    found = {cut: CutCost(statistics.median(times[cut]), sizes[cut], forms[cut]) for cut in runners if times[cut]}
    return {cut: found[stand] for cut, stand in wanted.items() if stand in found}


def sample_bytes(sample):
    """What the fields of a sample take, without their names."""
    return sum(len(data) for data, _ in _contents(sample))


def form_of(sample):
    """The Form of one sample."""
    largest = max(_contents(sample), key=lambda content: len(content[0]), default=(b"", 1))
    probe = bytes(largest[0][:PROBE_BYTES])
    if any(probe[at : at + len(magic)] == magic for at, magic in COMPRESSED):
        return Form(False, 1)
    smaller = len(zlib.compress(probe, 1)) < SMALLER * len(probe) if probe else False
    return Form(smaller, largest[1])


def merged(a, b):
    """The form of both: compressible if one is."""
    return b if a is None else Form(a.compressible or b.compressible, max(a.element_bytes, b.element_bytes))


def _contents(sample):
    """(bytes, size of a number) of each field."""
    for value in sample.fields.values():
        if isinstance(value, str):
            yield value.encode("utf-8", "surrogateescape"), 1
        elif isinstance(value, (bytes, bytearray)):
            yield value, 1
        elif hasattr(value, "nbytes"):
            yield (
                memoryview(value).cast("B") if value.flags.c_contiguous and value.nbytes else value.tobytes(),
                value.itemsize,
            )
        else:
            yield b"\0" * 8, 8
