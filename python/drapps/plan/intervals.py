"""Intervals of what is measured a few times: Student's t over the logarithms of rates, and means of samples."""

import math
import statistics
from typing import NamedTuple

CONFIDENCE = 0.95
PRIOR_SD = 0.1  # of the logarithm of a rate, before anything was measured twice,
PRIOR_WEIGHT = 4  # which counts like so many degrees of freedom


class Interval(NamedTuple):
    """A value with its bounds."""

    low: float
    mid: float
    high: float

    def times(self, factor):
        """All three, multiplied by a number from 0 on."""
        return Interval(*(value * factor for value in self))


def exactly(value):
    """The interval of what is known."""
    return Interval(value, value, value)


def t_quantile(freedom, confidence=CONFIDENCE):
    """The half width in standard errors: Student's t by Hill's expansion in 1 / freedom, for 3 degrees and more
    within 1 %.
    """
    z = statistics.NormalDist().inv_cdf(0.5 + confidence / 2)
    powers = [
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    ]
    return sum(term / freedom**i for i, term in enumerate(powers))


def pooled_noise(series):
    """(standard deviation, degrees of freedom) of the logarithm of one measurement, over several series of them."""
    squares, freedom = PRIOR_WEIGHT * PRIOR_SD**2, PRIOR_WEIGHT
    for values in series:
        logs = [math.log(value) for value in values if value > 0]
        if len(logs) > 1:
            squares += (len(logs) - 1) * statistics.variance(logs)
            freedom += len(logs) - 1
    return math.sqrt(squares / freedom), freedom


def rate_interval(values, noise, confidence=CONFIDENCE):
    """Of the geometric mean of some rates; noise: as pooled_noise gives it."""
    logs = [math.log(value) for value in values if value > 0]
    if not logs:
        return exactly(0.0)
    sd, freedom = noise
    half, mid = t_quantile(freedom, confidence) * sd / math.sqrt(len(logs)), statistics.fmean(logs)
    return Interval(math.exp(mid - half), math.exp(mid), math.exp(mid + half))


def total_interval(values, population, confidence=CONFIDENCE):
    """Of the sum over a population, of which these values were drawn without putting any back."""
    n = len(values)
    if not n:
        return exactly(0.0)
    mean = statistics.fmean(values)
    if n >= population:
        return exactly(mean * population)
    spread = statistics.stdev(values) if n > 1 else abs(mean)
    left = math.sqrt((population - n) / (population - 1))  # what was drawn is known
    half = t_quantile(max(n - 1, 3), confidence) * spread / math.sqrt(n) * left
    return Interval(max(0.0, mean - half) * population, mean * population, (mean + half) * population)
