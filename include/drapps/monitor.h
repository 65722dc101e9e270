/* monitor.h: readings of the machine and of the pipelines, ten times a second.
 *
 * A monitor is one thread that reads /proc, /sys and a few libraries at a fixed interval and keeps the results as
 * snapshots: one plain struct with a slot for each sensor.  A sensor that a machine lacks is absent, never an error:
 * its bit in `present` is 0, and so are its value and level.
 *
 *     dr_monitor *m;
 *     dr_snapshot s;
 *     if (dr_monitor_open(NULL, &m, &err) == DR_OK && dr_monitor_wait(m, 1, 1000, &s) == DR_OK)
 *         printf("%.2f CPUs busy\n", s.value[DR_SENSOR_CPU_TOTAL]);
 *     dr_monitor_unref(&m);
 *
 * All calls may be made from any thread.  After a fork the child's calls fail with DR_ERR_FORKED; dr_monitor_unref
 * works.
 */
#ifndef DRAPPS_MONITOR_H
#define DRAPPS_MONITOR_H

#include <stddef.h>
#include <stdint.h>

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(id, name, unit, what level 1.0 means, doc).  New sensors are added at the end: numbers stay. */
#define DR_SENSOR_MAP(X)                                                                                               \
    X(CPU_TOTAL, "cpu_total", "cpus", "all CPUs of the machine busy", "CPUs that run anything")                        \
    X(CPU_BUSIEST, "cpu_busiest", "cpus", "a CPU without a pause", "the busiest CPU")                                  \
    X(CPU_OWN, "cpu_own", "cpus", "all CPUs of the machine", "this process and the processes it watches")              \
    X(CPU_FOREIGN, "cpu_foreign", "cpus", "all CPUs of the machine", "what others run: cpu_total - cpu_own")           \
    X(CPU_STEAL, "cpu_steal", "cpus", "all CPUs of the machine", "taken by other guests of the host")                  \
    X(IO_WAIT, "io_wait", "cpus", "all CPUs of the machine", "idle CPUs with a task that waits for storage")           \
    X(PRESSURE_CPU, "pressure_cpu", "share", "always", "time in which some task waited for a CPU")                     \
    X(PRESSURE_MEMORY, "pressure_memory", "share", "always", "time in which some task waited for memory")              \
    X(PRESSURE_IO, "pressure_io", "share", "always", "time in which some task waited for storage")                     \
    X(MEM_USED, "mem_used", "bytes", "the container's limit, or all memory", "memory in use that cannot be dropped")   \
    X(MEM_AVAILABLE, "mem_available", "bytes", "the container's limit, or all memory", "memory that can still be had") \
    X(MEM_OWN, "mem_own", "bytes", "the container's limit, or all memory", "resident memory of this process")          \
    X(MEM_BANDWIDTH, "mem_bandwidth", "bytes/s", "the fastest stream seen", "a timed stream over 1 MB: a proxy")       \
    X(QUOTA_USED, "quota_used", "cpus", "the container's quota, or all CPUs", "CPUs that our cgroup uses")             \
    X(THROTTLED, "throttled", "share", "always", "time in which the quota held our cgroup back")                       \
    X(DISK_BANDWIDTH, "disk_bandwidth", "bytes/s", "the highest seen, at least 100 MB/s", "read and written")          \
    X(DISK_BUSY, "disk_busy", "share", "always", "time in which the busiest disk had a request")                       \
    X(DISK_QUEUE, "disk_queue", "requests", "32 requests", "requests in flight, mean over the interval")               \
    X(DISK_LATENCY, "disk_latency", "s", "0.1 s", "time of a request that ended; 0: none did")                         \
    X(NET_BANDWIDTH, "net_bandwidth", "bytes/s", "the links' speed, or the highest seen, at least 125 MB/s",           \
      "received and sent")                                                                                             \
    X(NET_RTT, "net_rtt", "s", "0.1 s", "mean round trip of TCP connections to other addresses, active in 10 s")       \
    X(NET_RETRANSMITS, "net_retransmits", "share", "one segment in ten", "TCP segments sent again")                    \
    X(GPU_BUSY, "gpu_busy", "share", "always", "time in which a kernel ran, mean over the GPUs")                       \
    X(GPU_MEMORY, "gpu_memory", "bytes", "all memory of the GPUs", "GPU memory in use")                                \
    X(GPU_BANDWIDTH, "gpu_bandwidth", "share", "always", "time in which GPU memory was read or written, mean")         \
    X(GPU_POWER, "gpu_power", "W", "the GPUs' power limit", "power of the GPUs")                                       \
    X(POWER, "power", "W", "the packages' power limit, or all CPUs busy in the model", "power of the CPU packages")    \
    X(FILL_FETCH, "fill_fetch", "share", "full", "queue of samples to read")                                           \
    X(FILL_DECODE, "fill_decode", "share", "full", "queue of samples to decode")                                       \
    X(FILL_AUGMENT, "fill_augment", "share", "full", "queue of samples to augment")                                    \
    X(FILL_BATCH, "fill_batch", "share", "full", "queue of batches that are ready")                                    \
    X(FILL_SLOW, "fill_slow", "share", "full", "queue of the slow lane")                                               \
    X(SERVICE_FETCH, "service_fetch", "s", "the demand interval", "reading a sample")                                  \
    X(SERVICE_DECODE, "service_decode", "s", "the demand interval", "decoding a sample")                               \
    X(SERVICE_AUGMENT, "service_augment", "s", "the demand interval", "augmenting a sample")                           \
    X(SERVICE_BATCH, "service_batch", "s", "the demand interval", "a sample's share of making a batch")                \
    X(SERVICE_SLOW, "service_slow", "s", "the demand interval", "a sample of the slow lane")                           \
    X(BATCH_LATENCY, "batch_latency", "s", "1 s", "from a batch's first sample begun to the batch ready")              \
    X(CONSUMER_WAIT, "consumer_wait", "share", "always", "time in which the consumer waited for a batch")              \
    X(CACHE_HITS, "cache_hits", "share", "every sample", "samples that came from the cache")                           \
    X(CACHE_FILL, "cache_fill", "share", "full", "the cache")                                                          \
    X(IN_FLIGHT, "in_flight", "bytes", "the byte budget", "samples and batches in flight")                             \
    X(OWN_THREADS, "own_threads", "threads", "as many as CPUs",                                                        \
      "threads of this process that compute at a time, without drapps' own")

typedef enum dr_sensor {
#define DR_SENSOR_ENUM(id, name, unit, full, doc) DR_SENSOR_##id,
    DR_SENSOR_MAP(DR_SENSOR_ENUM)
#undef DR_SENSOR_ENUM
        DR_N_SENSORS
} dr_sensor;

enum { DR_MAX_CPUS = 512 };

/* One reading of everything.  Rates are means over the time since the reading before. */
typedef struct dr_snapshot {
    uint64_t time_ns;           /* CLOCK_MONOTONIC */
    uint64_t number;            /* 1, 2, ...; 1 is made by dr_monitor_open, where what needs two readings is absent */
    uint64_t present;           /* bit (1 << dr_sensor): the sensor has a value */
    uint64_t modelled;          /* bit (1 << dr_sensor): estimated, not measured */
    double value[DR_N_SENSORS]; /* in the sensor's unit */
    double level[DR_N_SENSORS]; /* the same in [0, 1] */
    uint32_t n_cpus;            /* entries of cpu; CPUs beyond DR_MAX_CPUS count in the sensors, not here */
    float cpu[DR_MAX_CPUS];     /* use of each CPU, in [0, 1]; 0 for one that is offline */
} dr_snapshot;

/**
 * Get the table of sensors.
 *
 * @return A static JSON text: [{"name", "unit", "full", "doc"}, ...] in the order of the enum.  Never NULL.
 */
DR_API const char *dr_sensors_json(void);

/**
 * Get the name of a sensor.
 *
 * @param sensor A dr_sensor.
 *
 * @return A static text; NULL for a number that is no sensor.
 */
DR_API const char *dr_sensor_name(int sensor);

/* --- a monitor --- */

typedef struct dr_monitor dr_monitor;

typedef struct dr_monitor_options {
    size_t size;      /* sizeof(dr_monitor_options) */
    int interval_ms;  /* 10..1000; CPU use has a resolution of 100 ms at best */
    int history;      /* snapshots that are kept: 1..100000 */
    const char *root; /* before /proc and /sys: "", or the folder with the tree of another machine; borrowed for the
                         call. With one, the GPU, memory bandwidth and connections of this machine stay out. */
} dr_monitor_options;

/**
 * Fill in the defaults: 100 ms, 300 snapshots, root "".
 *
 * @param options Overwritten, its `size` included.
 */
DR_API void dr_monitor_defaults(dr_monitor_options *options);

/**
 * Start a monitor and wait for its first snapshot.
 *
 * @param options The settings; NULL: the defaults.
 * @param out     A reference, which the caller releases by dr_monitor_unref.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where an option is out of range; DR_ERR_NOMEM.
 */
DR_API dr_status dr_monitor_open(const dr_monitor_options *options, dr_monitor **out, dr_error *err);

/**
 * Add a reference.  One monitor may serve several loaders.
 *
 * @param monitor The monitor.
 *
 * @return The same monitor; the caller releases the reference by dr_monitor_unref.
 */
DR_API dr_monitor *dr_monitor_ref(dr_monitor *monitor);

/**
 * Release a reference.  The last one stops the thread and frees the monitor.
 *
 * @param monitor The monitor; set to NULL.  A pointer to NULL is allowed.
 *
 * @note Not from a callback of the monitor.
 */
DR_API void dr_monitor_unref(dr_monitor **monitor);

/**
 * Stop the thread, also if there are other references.  No callback runs after this call; snapshots stay readable.
 *
 * @param monitor The monitor.
 *
 * @note Not from a callback of the monitor.
 */
DR_API void dr_monitor_close(dr_monitor *monitor);

/* --- reading --- */

/**
 * Get the newest snapshot.
 *
 * @param monitor The monitor.
 * @param out     Receives the snapshot.
 *
 * @return DR_OK or DR_ERR_FORKED.
 */
DR_API dr_status dr_monitor_latest(dr_monitor *monitor, dr_snapshot *out);

/**
 * Wait for a snapshot.
 *
 * @param monitor    The monitor.
 * @param after      The snapshot must have a higher number.
 * @param timeout_ms The longest time to wait.
 * @param out        Receives the oldest such snapshot that is kept.
 *
 * @return DR_OK; DR_AGAIN after the timeout; DR_END where the monitor was closed and there is none; DR_ERR_FORKED.
 */
DR_API dr_status dr_monitor_wait(dr_monitor *monitor, uint64_t after, int timeout_ms, dr_snapshot *out);

/**
 * Copy the newest snapshots, oldest first.
 *
 * @param monitor The monitor.
 * @param after   Only snapshots with higher numbers.
 * @param out     Room for `cap` snapshots.
 * @param cap     How many to copy at most.
 *
 * @return How many were copied; 0 in the child of a fork.
 */
DR_API size_t dr_monitor_history(dr_monitor *monitor, uint64_t after, dr_snapshot *out, size_t cap);

/**
 * Change the interval.  The next snapshot is made that long after the last one.
 *
 * @param monitor     The monitor.
 * @param interval_ms 10 .. 1000.
 * @param err         The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where interval_ms is out of range; DR_ERR_FORKED.
 */
DR_API dr_status dr_monitor_set_interval(dr_monitor *monitor, int interval_ms, dr_error *err);

/**
 * Get the interval.
 *
 * @param monitor The monitor.
 *
 * @return The interval in ms; 0 in the child of a fork.
 */
DR_API int dr_monitor_interval(dr_monitor *monitor);

/* --- callbacks and processes --- */

/* Called in the monitor's thread after each snapshot, which is borrowed for the call.  Must be quick. */
typedef void dr_monitor_fn(void *user, const dr_snapshot *snapshot);

/**
 * Register a callback.
 *
 * @param monitor The monitor.
 * @param fn      The callback.
 * @param user    Its first argument; must stay valid until dr_monitor_unsubscribe.
 * @param token   Receives the argument of dr_monitor_unsubscribe.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_LIMIT where there are 64 already; DR_ERR_FORKED.
 */
DR_API dr_status dr_monitor_subscribe(dr_monitor *monitor, dr_monitor_fn *fn, void *user, int *token, dr_error *err);

/**
 * Remove a callback.  When this returns, the callback does not run and will not run again.
 *
 * @param monitor The monitor.
 * @param token   Of dr_monitor_subscribe.
 *
 * @note From inside a callback, this does not wait for the running call.
 */
DR_API void dr_monitor_unsubscribe(dr_monitor *monitor, int token);

/**
 * Count the CPU time of another process, such as a worker, as own.
 *
 * @param monitor The monitor.
 * @param pid     The process.  One that ends is removed automatically.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_LIMIT where 256 processes are watched already; DR_ERR_NOT_FOUND where there is no such process;
 *         DR_ERR_FORKED.
 */
DR_API dr_status dr_monitor_watch(dr_monitor *monitor, int pid, dr_error *err);

/**
 * Count a process as own no longer.
 *
 * @param monitor The monitor.
 * @param pid     The process; one that is not watched is ignored.
 */
DR_API void dr_monitor_unwatch(dr_monitor *monitor, int pid);

/**
 * Report for how long an accelerator that NVML does not know (an OpenCL device, an emulated one) was busy.
 *
 * The times become the sensor gpu_busy where NVML has no GPU.  From the first call on, time that is not reported counts
 * as idle.
 *
 * @param monitor The monitor.
 * @param busy_ns Busy time since the last call; of several devices, their mean.
 */
DR_API void dr_monitor_add_busy(dr_monitor *monitor, uint64_t busy_ns);

#ifdef __cplusplus
}
#endif
#endif
