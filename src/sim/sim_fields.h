/* sim_fields.h: every number that describes a simulated machine, load, training and run.
 *
 * Presets, the texts "name=value,..." of users and profiles of real machines set these fields; nothing else describes a
 * simulation, apart from its disturbances (disturb.h).
 */
#ifndef DR_SIM_FIELDS_H
#define DR_SIM_FIELDS_H

#include <stddef.h>

#include <drapps/sim.h>

/* X(name, group, unit, least, most, default, doc). */
#define DR__SIM_FIELD_MAP(X)                                                                                           \
    X(cpus, MACHINE, "cpus", 1, 512, 8, "logical CPUs of a node")                                                      \
    X(cpu_speed, MACHINE, "times", 0.01, 100, 1, "speed of a CPU, as a multiple of the workloads' reference")          \
    X(crowd, MACHINE, "share", 0, 4, 0.2, "more CPU time that a sample takes while all CPUs are busy (SMT, caches)")   \
    X(switch_cost, MACHINE, "share", 0, 1, 0.02, "the same for each thread in a CPU's queue: context switches")        \
    X(quota, MACHINE, "cpus", 0, 512, 0, "the container's CPU quota, in periods of 100 ms; 0: none")                   \
    X(memory, MACHINE, "bytes", 1e8, 1e15, 32e9, "memory of a node")                                                   \
    X(memory_bw, MACHINE, "bytes/s", 1e8, 1e14, 40e9, "memory bandwidth of a node")                                    \
    X(page_cache, MACHINE, "bytes", 0, 1e15, 8e9, "memory in which the system keeps files")                            \
    X(read_latency, MACHINE, "s", 0, 10, 1e-4, "time of a small read from storage")                                    \
    X(read_depth, MACHINE, "requests", 0.1, 1e6, 64, "reads that storage serves at a time")                            \
    X(read_bw, MACHINE, "bytes/s", 1e3, 1e13, 3e9, "bandwidth of storage")                                             \
    X(link_bw, MACHINE, "bytes/s", 0, 1e13, 0, "bandwidth of the link to a storage server; 0: storage is local")       \
    X(rtt, MACHINE, "s", 0, 10, 0, "round trip on that link")                                                          \
    X(remote_cpus, MACHINE, "cpus", 0, 4096, 0, "CPUs of the storage server for ops; 0: it runs none")                 \
    X(nodes, MACHINE, "nodes", 1, 4096, 1, "nodes that share link and server; one of them is simulated")               \
    X(accels, MACHINE, "devices", 1, 64, 1, "accelerators of a node, fed by one loader")                               \
    X(accel_speed, MACHINE, "times", 0.001, 1000, 1, "speed of an accelerator, as a multiple of a V100's")             \
    X(idle_power, MACHINE, "W", 0, 1e5, 20, "power of the CPU packages at rest")                                       \
    X(full_power, MACHINE, "W", 0.1, 1e5, 100, "the same with all CPUs busy")                                          \
    X(samples, LOAD, "samples", 1, 1e12, 1e6, "samples of the data set")                                               \
    X(sample_bytes, LOAD, "bytes", 0, 1e12, 110e3, "encoded bytes of a sample")                                        \
    X(cpu, LOAD, "s", 1e-7, 1e4, 6e-3, "CPU time of a sample, all ops together")                                       \
    X(cpu_cv, LOAD, "share", 0, 10, 0.5, "standard deviation of that over its mean; lognormal")                        \
    X(slow_share, LOAD, "share", 0, 0.5, 0, "samples that are much slower than the others")                            \
    X(slow_factor, LOAD, "times", 1, 1000, 10, "how much slower these are")                                            \
    X(blocked, LOAD, "s", 0, 1e3, 0, "time for which a worker waits for something else in each sample")                \
    X(cached_read, LOAD, "s", 0, 10, 2e-5, "time of a read from the page cache")                                       \
    X(batch, LOAD, "samples", 1, 1e6, 64, "batch of one accelerator")                                                  \
    X(out_bytes, LOAD, "bytes", 0, 1e12, 602112, "bytes of a sample in a batch")                                       \
    X(moved_bytes, LOAD, "bytes", 0, 1e13, 4e6, "memory traffic that a sample causes")                                 \
    X(prefix, LOAD, "share", 0, 1, 0.7, "share of the CPU time that a cache saves, or that a server can run")          \
    X(prefix_bytes, LOAD, "bytes", 0, 1e12, 800e3, "bytes of a sample after these ops")                                \
    X(accel_each, LOAD, "s", 0, 10, 0, "time of a sample's ops that run on the accelerator (a V100)")                  \
    X(step_each, TRAINING, "s", 0, 100, 2.6e-3, "time of a sample in training on a V100")                              \
    X(demand, TRAINING, "share", 0, 100, 0,                                                                            \
      "samples asked for, as a share of what all CPUs can make; in place of step_each; 0: not given")                  \
    X(step_cv, TRAINING, "share", 0, 5, 0.02, "standard deviation of a step over its mean")                            \
    X(train_cpu, TRAINING, "share", 0, 1, 0.1, "share of a step that is spent on CPUs")                                \
    X(train_threads, TRAINING, "threads", 1, 512, 1, "threads that compute in that share")                             \
    X(eval_every, TRAINING, "steps", 0, 1e9, 0, "steps between two pauses for evaluation or a checkpoint; 0: none")    \
    X(eval_for, TRAINING, "s", 0, 1e5, 0, "length of such a pause")                                                    \
    X(eval_cpus, TRAINING, "cpus", 0, 512, 0, "threads that want a CPU in such a pause")                               \
    X(lag, RUN, "s", 0, 10, 5e-4, "time from a batch's last sample to the batch in the consumer's hands")              \
    X(jitter, RUN, "s", 0, 1, 5e-4,                                                                                    \
      "time that the consumer waits for a CPU when twice as many threads as CPUs want one")                            \
    X(tenants, RUN, "threads", 0, 4096, 0, "threads of others that always want a CPU")                                 \
    X(memory_limit, RUN, "bytes", 0, 1e15, 0, "for batches in flight; 0: a quarter of the memory")                     \
    X(cache, RUN, "bytes", 0, 1e15, 0, "cache of samples after the first ops; 0: none")                                \
    X(warm, RUN, "share", 0, 1, 0, "share of page cache and cache that is filled in the beginning")                    \
    X(noise, RUN, "share", 0, 1, 0.03, "standard deviation of what sensors say")                                       \
    X(sensor_delay, RUN, "s", 0, 1, 0, "age of what sensors say")                                                      \
    X(missing, RUN, "share", 0, 1, 0, "sensors that the machine lacks")                                                \
    X(action_delay, RUN, "s", 0, 5, 0, "time from setting a knob to its effect")                                       \
    X(workers, RUN, "threads", 0, 256, 0, "workers in the beginning; 0: as many as CPUs may be used")                  \
    X(readers, RUN, "threads", 0, 64, 0, "readers in the beginning")                                                   \
    X(prefetch, RUN, "batches", 0, 64, 0, "prefetch window in the beginning; 0: the loader's default")

typedef struct dr__sim_fields {
#define DR__SIM_MEMBER(name, group, unit, least, most, standard, doc) double name;
    DR__SIM_FIELD_MAP(DR__SIM_MEMBER)
#undef DR__SIM_MEMBER
} dr__sim_fields;

typedef struct dr__sim_field_row {
    const char *name, *group, *unit, *doc;
    double least, most, standard;
    size_t offset;
} dr__sim_field_row;

extern const dr__sim_field_row dr__sim_field_rows[];
enum { DR__SIM_N_FIELDS = sizeof(dr__sim_fields) / sizeof(double) };

void dr__sim_fields_standard(dr__sim_fields *f);

/* Sets fields from "name=value,name=value"; NULL and "" set none.  DR_ERR_ARG, and the fields before the wrong one are
 * set. */
dr_status dr__sim_fields_set(dr__sim_fields *f, const char *text, dr_error *err);

static inline double *dr__sim_field(dr__sim_fields *f, const dr__sim_field_row *row)
{
    return (double *)(void *)((char *)f + row->offset);
}

#endif
