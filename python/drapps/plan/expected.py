"""What is expected of a strategy before it is measured: from what single samples cost (stage_costs.py), and from speeds
that are usual.  This decides what is tried first and what the budget has room for, and nothing else.
"""

from typing import NamedTuple

DISK_RATE = 300e6  # bytes/s, of reading and of writing
MEMORY_RATE = 3e9  # bytes/s of a CPU that copies and checks what is in the page cache
CODEC_RATES = {  # bytes/s of a CPU: encoding, decoding
    "lz4": (400e6, 3e9),
    "zstd:1": (300e6, 1.2e9),
    "zstd:6": (60e6, 1.2e9),
    "shuffle+lz4": (800e6, 3e9),
    "shuffle+zstd:1": (400e6, 1.2e9),
}
USUAL_CODEC = (300e6, 1.2e9)


class Load(NamedTuple):
    """Of one sample in an epoch."""

    cpu: float  # seconds of one CPU: read it, and carry out the stages that are left
    bytes: float  # that are read for it
    found: float  # share of the samples that the page cache has


def seconds_left(costs, cut):
    """Seconds of the stages after a cut; costs: {cut: CutCost}.

    A sample that is made up to a cut has all pixels there, while a decoder makes only what the ops behind it need.  So
    the first part of a sample may take longer alone than together with more stages; the shortest of these counts.
    """
    least = min(cost.seconds for stages, cost in costs.items() if stages >= cut)
    return costs[max(costs)].seconds - least


def load(costs, cut, size, codec, found):
    """The Load of a cut whose stored samples have so many bytes before they are encoded."""
    decoding = size / CODEC_RATES.get(codec, USUAL_CODEC)[1] if codec else 0.0
    cpu = max(seconds_left(costs, cut), 0.0) + costs[0].seconds + size / MEMORY_RATE + decoding
    return Load(cpu, size, found)


def rate(one, workers):
    """Samples/s of an epoch."""
    return 1 / max(one.cpu / workers, (1 - one.found) * one.bytes / DISK_RATE, 1e-9)


def storing_seconds(cost, codec, workers):
    """Seconds until a sample of a cut is stored."""
    size = sum(cost.bytes) / len(cost.bytes) if cost.bytes else 0.0
    encoding = size / CODEC_RATES.get(codec, USUAL_CODEC)[0] if codec else 0.0
    return max((cost.seconds + encoding) / workers, size / DISK_RATE)
