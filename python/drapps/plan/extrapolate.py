"""From some samples to the whole data set: time, bytes, and how much of it memory holds.

An epoch in shuffled order reads each sample once.  Between two readings of a sample come, on average, half of the
others of each epoch, so that a cache that throws out what was not used for longest keeps less than its share: with
room for the share f, a sample is found with the probability 1 - (1 - f) + (1 - f) ln(1 - f).  A cache that knows the
order, or that protects what it has, reaches f; so these two are the bounds, and the lower one is what is reckoned
with.
"""

import math

from drapps.plan.intervals import Interval, exactly, t_quantile, total_interval


def hits(room, total):
    """Interval of the share of samples that are found in a memory with room for `room` of the total bytes."""
    if total <= room:
        return exactly(1.0)
    share = max(0.0, room / total)
    miss = 1 - share
    lru = 1 - miss + miss * math.log(miss)
    return Interval(lru, lru, share)


def mixed(found, fast, slow):
    """The rate where a share of the samples comes at one rate and the others at another."""
    if found >= 1:
        return fast
    return 1 / (found / fast + (1 - found) / slow) if fast and slow else 0.0


def mixed_interval(found, fast, slow):
    """The same of intervals."""
    return Interval(*(mixed(*three) for three in zip(found, fast, slow)))


def storage(made, samples, population):
    """Interval of the bytes of the whole data set; made: of some samples."""
    if not samples or not made.bytes:
        return exactly(0.0)
    if made.sizes:
        overhead = max(0, made.bytes - sum(made.sizes))
        return Interval(*(value + overhead * population / samples for value in total_interval(made.sizes, population)))
    return exactly(made.bytes * population / samples)


def preparation(seconds, samples, population, noise):
    """Interval of the seconds that preparing the whole data set takes; noise: of one measurement, by pooled_noise."""
    if not samples or not seconds:
        return exactly(0.0)
    whole = seconds * population / samples
    sd, freedom = noise
    factor = math.exp(t_quantile(freedom) * sd)
    return Interval(whole / factor, whole, whole * factor)
