/* features.h: an observation as numbers for a learner: dimensionless, mostly in [-1, 1], the same for all machines.
 *
 * What a machine does not sense is 0, and `sensed` says how much it senses.  A small memory keeps means over 4 s and
 * 30 s, in place of a recurrent network.
 */
#ifndef DR_SCHED_FEATURES_H
#define DR_SCHED_FEATURES_H

#include "sched/observation.h"

/* X(name, doc).  New features are added at the end: numbers stay. */
#define DR__FEATURE_MAP(X)                                                                                             \
    X(cpu_total, "CPUs that run anything, of all")                                                                     \
    X(cpu_workers, "CPUs that the workers use, of those they may")                                                     \
    X(cpu_consumer, "CPUs that the consumer uses, of all")                                                             \
    X(cpu_foreign, "CPUs that others use, of all")                                                                     \
    X(cpu_steal, "CPUs taken by other guests, of all")                                                                 \
    X(quota, "CPUs of the container, of all")                                                                          \
    X(throttled, "time in which the quota held it back")                                                               \
    X(pressure_cpu, "time in which tasks waited for a CPU")                                                            \
    X(pressure_memory, "time in which tasks waited for memory")                                                        \
    X(pressure_io, "time in which tasks waited for storage")                                                           \
    X(mem_used, "memory in use")                                                                                       \
    X(mem_bandwidth, "memory bandwidth in use")                                                                        \
    X(in_flight, "bytes in flight, of their limit")                                                                    \
    X(disk_bandwidth, "of the highest")                                                                                \
    X(disk_busy, "time in which a disk was busy")                                                                      \
    X(disk_queue, "requests in flight, of 32")                                                                         \
    X(disk_latency, "of 0.1 s")                                                                                        \
    X(net_bandwidth, "of the link's")                                                                                  \
    X(net_rtt, "of 0.1 s")                                                                                             \
    X(gpu_busy, "time in which a kernel ran")                                                                          \
    X(power, "of the packages' limit")                                                                                 \
    X(sensed, "share of these sensors that there are")                                                                 \
    X(ready, "batches ready, of the prefetch window")                                                                  \
    X(ready_least, "the fewest in that time")                                                                          \
    X(ready_spread, "most minus least")                                                                                \
    X(open, "batches begun, of the window")                                                                            \
    X(cover, "seconds of demand that lie ready, of 10")                                                                \
    X(window, "seconds of demand in a full window, of 10")                                                             \
    X(busy, "time in which workers are at a sample")                                                                   \
    X(stretch, "time of work over its CPU time, less 1")                                                               \
    X(fetched, "samples read ahead, of four a worker")                                                                 \
    X(slow, "share of the work on slow samples")                                                                       \
    X(cache_hits, "samples that came from the cache")                                                                  \
    X(cache_fill, "of the cache")                                                                                      \
    X(latency, "of a batch, of 1 s")                                                                                   \
    X(wait, "share of its time in which the consumer waits")                                                           \
    X(wait_4s, "the same, mean over 4 s")                                                                              \
    X(wait_30s, "over 30 s")                                                                                           \
    X(served, "samples delivered, of those asked for")                                                                 \
    X(load, "CPUs that the demand needs, of those we may use")                                                         \
    X(read_load, "threads that the demand's reads need, of those there are")                                           \
    X(read_part, "blocked part of a sample's time")                                                                    \
    X(demand_moved, "demand over its mean of 30 s, less 1")                                                            \
    X(cost_moved, "CPU time of a sample over its mean of 30 s, less 1")                                                \
    X(foreign_moved, "others' CPUs less their mean of 30 s")                                                           \
    X(foreign_4s, "others' CPUs, mean over 4 s")                                                                       \
    X(since_change, "seconds since the weights changed, of 60")                                                        \
    X(period, "seconds between the last two such changes, of 60")                                                      \
    X(w_throughput, "weight")                                                                                          \
    X(w_latency, "weight")                                                                                             \
    X(w_balance, "weight")                                                                                             \
    X(w_energy, "weight")                                                                                              \
    X(w_idle, "weight")                                                                                                \
    X(w_host, "weight")                                                                                                \
    X(w_host_30s, "weight, mean over 30 s")                                                                            \
    X(w_energy_30s, "weight, mean over 30 s")                                                                          \
    X(knob_workers, "workers over CPUs, logarithm")                                                                    \
    X(knob_readers, "readers, logarithm")                                                                              \
    X(knob_prefetch, "prefetch window, logarithm")                                                                     \
    X(knob_bytes, "its limit of bytes, of the memory limit")                                                           \
    X(knob_ceiling, "CPU ceiling, of the CPUs; 1 without one")                                                         \
    X(knob_priority, "priority")                                                                                       \
    X(knob_lanes, "share of the slow lane")                                                                            \
    X(knob_offload, "offloaded share")                                                                                 \
    X(knob_codec, "codec of the cache: 0 none or chosen, 0.5 fast, 1 dense")                                           \
    X(cpus, "CPUs that we may use, logarithm")                                                                         \
    X(batch, "samples of a batch, logarithm")                                                                          \
    X(sudden, "conditions changed just now")

typedef enum dr__feature {
#define DR__FEATURE_ENUM(name, doc) DR__FEATURE_##name,
    DR__FEATURE_MAP(DR__FEATURE_ENUM)
#undef DR__FEATURE_ENUM
        DR__N_FEATURES
} dr__feature;

/* Zeroed before the first observation of a run. */
typedef struct dr__feature_memory {
    uint64_t n, changed_ns;
    double wait_4s, wait_30s, foreign_4s, foreign_30s, demand_30s, cpu_30s, host_30s, energy_30s, period;
    dr_weights weights;
} dr__feature_memory;

void dr__features(const dr__observation *o, dr__feature_memory *m, float out[DR__N_FEATURES]);

#endif
