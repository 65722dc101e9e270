"""What a loader plans for a drapps server: the line `offload:` of its explain()."""

import time

MOST_SECONDS = 20.0  # for measuring, trying cuts and planning
UNPLANNED = "not I/O-bound"  # begins the reason of a loader that sees no use in offload
ENOUGH = 0.2  # seconds between two looks


def line_of(loader):
    """Return the line of a loader, or "" where its samples do not come from a drapps server."""
    explain = getattr(loader, "explain", None)
    lines = explain().splitlines() if explain else []
    return next((line for line in lines if line.startswith("offload: ")), "")


def planned_line(pipe, step=0.0, seconds=MOST_SECONDS, **options):
    """Iterate a loader until it has planned; return the line.

    step: seconds of the consumer for a batch, or a function that is given one.
    """
    options = {"batch_size": 64, "shuffle": True, "on_bad_sample": "skip", "max_bad": 2**31, **options}
    with pipe.loader(**options) as loader:
        if not line_of(loader):
            return ""
        end = looked = time.monotonic()
        end += seconds
        while time.monotonic() < end:
            for batch in loader:
                _work(step, batch)
                if time.monotonic() > looked + ENOUGH:
                    looked = time.monotonic()
                    if looked > end or _is_settled(loader.stats()):
                        return line_of(loader)
        return line_of(loader)


def _work(step, batch):
    if callable(step):
        step(batch)
    elif step:
        time.sleep(step)


def _is_settled(stats):
    return stats["offload_phase"] in ("fixed", "planned") or stats["offload_why"].startswith(UNPLANNED)
