"""Statuses as drapps.live.read gives them, made up: a server with 64 CPUs and a GPU, and loaders on it."""

NOW_NS = 1_000_000_000_000
SECOND = 1_000_000_000

SENSORS = {  # name: (value, level)
    "cpu_total": (41.2, 41.2 / 64), "cpu_own": (12.5, 12.5 / 64), "cpu_foreign": (28.7, 28.7 / 64),
    "cpu_steal": (0.3, 0.005),
    "pressure_cpu": (0.12, 0.12), "pressure_memory": (0.0, 0.0), "pressure_io": (0.031, 0.031),
    "mem_used": (96 * 2**30, 0.375), "mem_own": (9.5 * 2**30, 0.037), "throttled": (0.02, 0.02),
    "disk_bandwidth": (850e6, 0.7), "disk_busy": (0.64, 0.64), "disk_latency": (0.0008, 0.008),
    "net_bandwidth": (1.2e6, 0.001), "net_retransmits": (0.004, 0.04),
    "gpu_busy": (0.93, 0.93), "gpu_memory": (31 * 2**30, 0.78), "gpu_power": (310.0, 0.77), "power": (212.4, 0.6),
}  # fmt: skip
GAUGES = {"ready": 3, "open": 7, "active": 11, "fetched": 20, "parked": 4, "bytes": 600 * 2**20, "bytes_limit": 2**30,
          "batch_samples": 256, "cache_fill": 0.42, "consumers": 0}  # fmt: skip
SUMS = {"samples": 2560, "batches": 10, "wait": 0.031, "step": 0.969, "worked": 2560, "read": 0.8, "work": 11.9,
        "cpu": 11.7, "bytes_read": 280e6, "latency": 3.2, "slow": 64, "cache_hits": 1536,
        "cache_misses": 1024}  # fmt: skip
KNOBS = {"workers": 12, "readers": 4, "prefetch": 8, "prefetch_bytes": 512 * 2**20, "lane_share": 0.25,
         "lane_threshold": 3, "cpu_ceiling": 0, "priority": -1}  # fmt: skip


def decision(number, age, reason, changes=None, guarded=False, bound="workers"):
    return {"number": number, "time_ns": NOW_NS - age * SECOND, "bound": bound, "reward": 0.9, "guarded": guarded,
            "reason": reason, "changes": changes or {}}  # fmt: skip


DECISIONS = [
    decision(1, 200, "The consumer waits 12 % of its time, 20 of 64 CPUs are free.", {"workers": [8.0, 12.0]}),
    decision(2, 90, "The reward fell: the change is taken back.", {"workers": [14.0, 12.0]}, guarded=True),
]
LAST = decision(192, 0, "The consumer waits 3.1 % of its time: nothing to gain.")


def status(seconds, name="imagenet/train", pid=4711, loader=1, factor=1.0, **more):
    """What a loader shows after so many seconds of a life that began 192 s before NOW_NS."""
    started = NOW_NS - 192 * SECOND
    return {
        "pid": pid, "loader": loader, "command": f"python train.py --run {pid}", "version": "0.1.0", "name": name,
        "policy": "analytic", "started_ns": started, "time_ns": started + int(seconds * SECOND),
        "sensors": {key: value for key, (value, _) in SENSORS.items()},
        "levels": {key: level for key, (_, level) in SENSORS.items()},
        "modelled": [], "cpu": [(i * 7 % 64) / 64 for i in range(64)],
        "flow": {**GAUGES, **{key: value * seconds * factor for key, value in SUMS.items()}, "bad": 0, "deaths": 0},
        "knobs": dict(KNOBS), "bounds": {"workers": 190, "cpu": 2}, "decisions": DECISIONS, "last": LAST, **more,
    }  # fmt: skip
