"""The keys of stats(), the same for every kind of loader; docs/stats.md explains them.

Native loaders have a value for each key (src/loader/report.c).  Other loaders have None for values they do not count.
"""

# Counters that are summed over the native loaders of one front end.
ENGINE_SUMS = ("bytes_read", "read_ns", "work_ns", "finish_ns", "slow_work_ns")
CACHE_SUMS = ("cache_hits", "cache_misses", "cache_damaged", "cache_written", "cache_written_bytes", "cache_raw_bytes",
              "cache_read_bytes", "cache_read_ns", "cache_memory_hits", "cache_memory_written",
              "cache_memory_raw_bytes", "cache_memory_refused")  # fmt: skip
REMOTE_SUMS = ("remote_requests", "remote_bytes", "remote_busy_ns", "offload_samples", "offload_packed", "offload_plain",
               "offload_shed", "offload_failed", "offload_server_ns", "segment_samples", "segment_bytes", "segment_stored",
               "segment_failed")  # fmt: skip
RANGE_SUMS = ("range_samples", "range_reads", "range_bytes_read", "range_bytes_stored", "range_again", "range_noted")
KEYS = (
    "samples", "delivered_samples", "batches", "epochs", "epoch", "bad_samples", "deaths", *ENGINE_SUMS, "wait",
    "batch_latency", "wait_ns", "step_ns", "workers", "prefetch", "policy", "knobs", "decisions", "trace",
    "ready_batches", "active_workers", "parked_samples", "bytes_in_flight", "open_batches", "batch_bytes",
    "batch_budget_bytes", "worker_budget_bytes", "slow_samples", "slow_workers", "lane_threshold_ns", "parked_bytes",
    "prediction", "seek_images", "seek_memory_bytes", "seek_file_bytes", "seek_found", "seek_missed", *RANGE_SUMS,
    *CACHE_SUMS,
    "cache_records", "cache_disk_bytes", "cache_limit_bytes", "cache_codec", "cache_why", "cache_stopped",
    "cache_memory_records", "cache_memory_bytes", "cache_memory_limit_bytes", "cache_memory_evicted",
    "cache_memory_codec", *REMOTE_SUMS, "offload_plans", "offload_planned", "offload_phase", "offload_policy",
    "offload_why",
)  # fmt: skip


def with_all_keys(known):
    """Return the counters of a loader, with None for the other keys."""
    return {key: known.get(key) for key in KEYS}
