"""Statistics of interleaved runs."""

import statistics


def spread(values):
    """Return the median with minimum and maximum; None without values."""
    values = [v for v in values if v is not None]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def paired_ratio(above, below):
    """Return the spread of above[k] / below[k] over the rounds that have both.

    Runs of one round are close in time, so that a slow phase of the machine affects both.
    """
    pairs = zip(above, below)
    return spread([a / b for a, b in pairs if a is not None and b])


def differences(got, want):
    """Return the differences of samples to the reference, both normalised float32 (N, 3, 224, 224)."""
    from . import workload

    largest = total = largest_float = 0.0
    differing = abs(len(got) - len(want))  # a missing or additional sample is a difference
    for a, b in zip(got, want):
        levels = abs(workload.to_levels(a[None]) - workload.to_levels(b[None]))
        largest = max(largest, float(levels.max()))
        total += float(levels.mean())
        largest_float = max(largest_float, float(abs(a - b).max()))
        differing += int(levels.max() >= 0.5)
    return {"images": len(want), "differing_images": differing, "largest": round(largest, 2),
            "mean": round(total / len(want), 4), "largest_float": largest_float}
