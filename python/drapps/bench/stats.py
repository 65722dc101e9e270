"""The few numbers that a bench reports, from runs that were interleaved."""

import statistics


def spread(values):
    """Median with smallest and largest; None without values."""
    values = [v for v in values if v is not None]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def paired_ratio(above, below):
    """Spread of above[k] / below[k] over the rounds that have both.

    Runs of one round stand next to each other in time, so that what slows the machine slows both.
    """
    pairs = zip(above, below)
    return spread([a / b for a, b in pairs if a is not None and b])


def differences(got, want):
    """How far samples are from the reference's, both float32 (N, 3, 224, 224) normalised; sample by sample."""
    from . import workload

    largest = total = largest_float = 0.0
    differing = abs(len(got) - len(want))  # a sample too few or too many is a difference
    for a, b in zip(got, want):
        levels = abs(workload.to_levels(a[None]) - workload.to_levels(b[None]))
        largest = max(largest, float(levels.max()))
        total += float(levels.mean())
        largest_float = max(largest_float, float(abs(a - b).max()))
        differing += int(levels.max() >= 0.5)
    return {"images": len(want), "differing_images": differing, "largest": round(largest, 2),
            "mean": round(total / len(want), 4), "largest_float": largest_float}
