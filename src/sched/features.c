/* features.c: an observation as numbers for a learner. */
#include "sched/features.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"

static const double LEVELS_OF = 60; /* seconds that times are shown in */

/* Sensors that are shown by their level. */
static const struct {
    int feature, sensor;
} levels[] = {
    { DR__FEATURE_cpu_total, DR_SENSOR_CPU_TOTAL },
    { DR__FEATURE_cpu_steal, DR_SENSOR_CPU_STEAL },
    { DR__FEATURE_throttled, DR_SENSOR_THROTTLED },
    { DR__FEATURE_pressure_cpu, DR_SENSOR_PRESSURE_CPU },
    { DR__FEATURE_pressure_memory, DR_SENSOR_PRESSURE_MEMORY },
    { DR__FEATURE_pressure_io, DR_SENSOR_PRESSURE_IO },
    { DR__FEATURE_mem_used, DR_SENSOR_MEM_USED },
    { DR__FEATURE_mem_bandwidth, DR_SENSOR_MEM_BANDWIDTH },
    { DR__FEATURE_disk_bandwidth, DR_SENSOR_DISK_BANDWIDTH },
    { DR__FEATURE_disk_busy, DR_SENSOR_DISK_BUSY },
    { DR__FEATURE_disk_queue, DR_SENSOR_DISK_QUEUE },
    { DR__FEATURE_disk_latency, DR_SENSOR_DISK_LATENCY },
    { DR__FEATURE_net_bandwidth, DR_SENSOR_NET_BANDWIDTH },
    { DR__FEATURE_net_rtt, DR_SENSOR_NET_RTT },
    { DR__FEATURE_gpu_busy, DR_SENSOR_GPU_BUSY },
    { DR__FEATURE_power, DR_SENSOR_POWER },
};

static double part(double a, double of)
{
    return of > 0 ? a / of : 0;
}

static void resources(const dr__observation *o, double *x)
{
    int sensed = 0;
    for (size_t i = 0; i < DR_COUNT(levels); i++)
        if (dr__senses(o, levels[i].sensor)) {
            x[levels[i].feature] = o->level[levels[i].sensor];
            sensed++;
        }
    x[DR__FEATURE_sensed] = (double)sensed / (double)DR_COUNT(levels);
    x[DR__FEATURE_cpu_workers] = part(o->flow[DR_FLOW_CPU], o->cpus);
    x[DR__FEATURE_cpu_consumer] = part(o->consumer_cpus, o->machine_cpus);
    x[DR__FEATURE_cpu_foreign] = part(o->foreign_cpus, o->machine_cpus);
    x[DR__FEATURE_quota] = part(o->quota_cpus, o->machine_cpus);
    x[DR__FEATURE_in_flight] = part(o->flow[DR_FLOW_BYTES], o->memory_limit);
}

static void queues(const dr__observation *o, double *x)
{
    const double window = DR_MAX(o->knob[DR_KNOB_PREFETCH], 1), batch_s = part(o->batch_samples, o->demand);
    const double asked = o->flow[DR_FLOW_CACHE_HITS] + o->flow[DR_FLOW_CACHE_MISSES];
    x[DR__FEATURE_ready] = o->flow[DR_FLOW_READY] / window;
    x[DR__FEATURE_ready_least] = o->least_ready / window;
    x[DR__FEATURE_ready_spread] = (o->most_ready - o->least_ready) / window;
    x[DR__FEATURE_open] = o->flow[DR_FLOW_OPEN] / window;
    x[DR__FEATURE_cover] = o->flow[DR_FLOW_READY] * batch_s / 10;
    x[DR__FEATURE_window] = window * batch_s / 10;
    x[DR__FEATURE_busy] = o->busy;
    x[DR__FEATURE_stretch] = o->stretch - 1;
    x[DR__FEATURE_fetched] = o->flow[DR_FLOW_FETCHED] / (4 * DR_MAX(o->knob[DR_KNOB_WORKERS], 1));
    x[DR__FEATURE_slow] = part(o->flow[DR_FLOW_SLOW_WORK], o->flow[DR_FLOW_WORK]);
    x[DR__FEATURE_cache_hits] = part(o->flow[DR_FLOW_CACHE_HITS], asked);
    x[DR__FEATURE_cache_fill] = o->flow[DR_FLOW_CACHE_FILL];
    x[DR__FEATURE_latency] = o->latency;
}

static void needs(const dr__observation *o, double *x)
{
    const double readers = o->knob[DR_KNOB_READERS], threads = readers > 0 ? readers : o->knob[DR_KNOB_WORKERS];
    x[DR__FEATURE_wait] = o->wait;
    x[DR__FEATURE_served] = part(o->rate, o->demand);
    x[DR__FEATURE_load] = part(o->demand * o->cpu_each, o->cpus);
    x[DR__FEATURE_read_load] = part(o->demand * o->read_each, threads);
    x[DR__FEATURE_read_part] = part(o->read_each, o->read_each + o->work_each);
    for (int i = 0; i < DR_N_TERMS - 1; i++) /* the last is for changes, which is small and fixed */
        x[DR__FEATURE_w_throughput + i] = o->use.weights.of[i];
}

static double log_part(double x, double scale)
{
    return log2(DR_MAX(x, 1e-3)) / scale;
}

static void knobs(const dr__observation *o, double *x)
{
    const double ceiling = o->knob[DR_KNOB_CPU_CEILING], codec = o->knob[DR_KNOB_CODEC];
    x[DR__FEATURE_knob_workers] = log_part(part(o->knob[DR_KNOB_WORKERS], o->cpus), 3);
    x[DR__FEATURE_knob_readers] = log_part(1 + o->knob[DR_KNOB_READERS], 6);
    x[DR__FEATURE_knob_prefetch] = log_part(o->knob[DR_KNOB_PREFETCH], 6);
    x[DR__FEATURE_knob_bytes] = part(o->knob[DR_KNOB_PREFETCH_BYTES], o->memory_limit);
    x[DR__FEATURE_knob_ceiling] = ceiling > 0 ? part(ceiling, o->cpus) : 1;
    x[DR__FEATURE_knob_priority] = o->knob[DR_KNOB_PRIORITY];
    x[DR__FEATURE_knob_lanes] = o->knob[DR_KNOB_LANE_SHARE];
    x[DR__FEATURE_knob_offload] = o->knob[DR_KNOB_OFFLOAD];
    x[DR__FEATURE_knob_codec] = codec <= 0 ? 0 : codec == 3 ? 1 : 0.5;
    x[DR__FEATURE_cpus] = log_part(o->cpus, 7);
    x[DR__FEATURE_batch] = log_part(o->batch_samples, 10);
    x[DR__FEATURE_sudden] = o->sudden;
}

/* --- memory --- */

static void follow(double *mean, double value, double span, double time, bool first)
{
    *mean = first ? value : *mean + (value - *mean) * DR_MIN(span / time, 1);
}

static void remember(const dr__observation *o, dr__feature_memory *m, double *x)
{
    const bool first = m->n++ == 0;
    const double foreign = x[DR__FEATURE_cpu_foreign];
    follow(&m->wait_4s, o->wait, o->span, 4, first);
    follow(&m->wait_30s, o->wait, o->span, 30, first);
    follow(&m->foreign_4s, foreign, o->span, 4, first);
    follow(&m->foreign_30s, foreign, o->span, 30, first);
    follow(&m->demand_30s, o->demand, o->span, 30, first || !(m->demand_30s > 0));
    follow(&m->cpu_30s, o->cpu_each, o->span, 30, first || !(m->cpu_30s > 0));
    follow(&m->host_30s, o->use.weights.of[DR_TERM_HOST], o->span, 30, first);
    follow(&m->energy_30s, o->use.weights.of[DR_TERM_ENERGY], o->span, 30, first);
    if (first || memcmp(&m->weights, &o->use.weights, sizeof m->weights) != 0) {
        m->period = first ? 0 : (double)(o->time_ns - m->changed_ns) * 1e-9;
        m->changed_ns = o->time_ns;
        m->weights = o->use.weights;
    }
}

static void memories(const dr__observation *o, const dr__feature_memory *m, double *x)
{
    x[DR__FEATURE_wait_4s] = m->wait_4s;
    x[DR__FEATURE_wait_30s] = m->wait_30s;
    x[DR__FEATURE_demand_moved] = o->demand > 0 ? part(o->demand, m->demand_30s) - 1 : 0;
    x[DR__FEATURE_cost_moved] = o->cpu_each > 0 ? part(o->cpu_each, m->cpu_30s) - 1 : 0;
    x[DR__FEATURE_foreign_moved] = x[DR__FEATURE_cpu_foreign] - m->foreign_30s;
    x[DR__FEATURE_foreign_4s] = m->foreign_4s;
    x[DR__FEATURE_since_change] = (double)(o->time_ns - m->changed_ns) * 1e-9 / LEVELS_OF;
    x[DR__FEATURE_period] = m->period / LEVELS_OF;
    x[DR__FEATURE_w_host_30s] = m->host_30s;
    x[DR__FEATURE_w_energy_30s] = m->energy_30s;
}

void dr__features(const dr__observation *o, dr__feature_memory *m, float out[DR__N_FEATURES])
{
    double x[DR__N_FEATURES] = { 0 };
    resources(o, x);
    queues(o, x);
    needs(o, x);
    knobs(o, x);
    remember(o, m, x);
    memories(o, m, x);
    for (int i = 0; i < DR__N_FEATURES; i++)
        out[i] = isfinite(x[i]) ? (float)DR_MIN(DR_MAX(x[i], -4), 4) : 0;
}
