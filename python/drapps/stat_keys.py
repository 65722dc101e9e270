"""The keys of stats(): the same for every kind of loader.  docs/stats.md says what they mean.

The engine tells them all (src/loader/report.c).  A loader of another kind has None where it does not count something.
"""

# What the loaders of a process that work for one front end add up to.
ENGINE_SUMS = ("bytes_read", "read_ns", "work_ns", "finish_ns", "slow_work_ns")
CACHE_SUMS = ("cache_hits", "cache_misses", "cache_damaged", "cache_written", "cache_written_bytes", "cache_raw_bytes",
              "cache_read_bytes", "cache_read_ns")  # fmt: skip
KEYS = (
    "samples", "delivered_samples", "batches", "epochs", "epoch", "bad_samples", "deaths", *ENGINE_SUMS, "wait",
    "batch_latency", "wait_ns", "step_ns", "workers", "prefetch", "policy", "knobs", "decisions", "trace",
    "ready_batches", "active_workers", "parked_samples", "bytes_under_way", "open_batches", "batch_bytes",
    "batch_budget_bytes", "worker_budget_bytes", "slow_samples", "slow_workers", "lane_threshold_ns", "parked_bytes",
    "prediction", "seek_images", "seek_memory_bytes", "seek_file_bytes", "seek_found", "seek_missed", *CACHE_SUMS,
    "cache_records", "cache_disk_bytes", "cache_limit_bytes", "cache_codec", "cache_why", "cache_stopped",
)  # fmt: skip


def with_all_keys(known):
    """What a loader has counted, and None for the rest."""
    return {key: known.get(key) for key in KEYS}
