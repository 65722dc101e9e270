/* sense.c: what a monitor and a controller see of a simulation. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "sim/twin.h"

static const double FIRST_S = 1; /* time of the first snapshot: 0 means "never" to policies */

/* --- flow --- */

void dr__sim_flow(const dr_sim *s, double flow[DR_N_FLOWS])
{
    memcpy(flow, s->flow, sizeof s->flow);
    uint64_t ready = 0;
    for (uint64_t i = s->delivered; i < s->working; i++)
        ready += s->ring[i % DR__SIM_RING].ready_s <= s->time;
    const double each = s->batch * s->f.out_bytes, open = (double)(s->begun - s->delivered);
    flow[DR_FLOW_SLOW] = s->f.slow_share * s->done;
    flow[DR_FLOW_READY] = (double)ready;
    flow[DR_FLOW_OPEN] = open;
    flow[DR_FLOW_FETCHED] = s->knob[DR_KNOB_READERS] > 0 ? DR_MAX(s->read - s->done - flow[DR_FLOW_ACTIVE], 0) : 0;
    flow[DR_FLOW_BYTES] = open * each;
    flow[DR_FLOW_BYTES_LIMIT] = s->f.memory_limit > 0 ? s->f.memory_limit : s->f.memory / 4;
    flow[DR_FLOW_BATCH_BYTES] = each;
    flow[DR_FLOW_BATCH_SAMPLES] = s->batch;
    flow[DR_FLOW_CACHE_FILL] = s->f.cache > 0 ? DR_MIN(s->kept * s->kept_ratio / s->f.cache, 1) : 0;
    flow[DR_FLOW_CODEC] = s->knob[DR_KNOB_CODEC];
}

/* --- sensors --- */

static double noisy(dr_sim *s, double x)
{
    return x * DR_MAX(1 + s->f.noise * 1.7 * (2 * dr__sim_unit(&s->rng) - 1), 0);
}

/* A share is at most 1, whatever the noise. */
static void sense(dr_sim *s, dr__sim_reading *r, int sensor, double value, double full)
{
    const double seen = noisy(s, value);
    r->level[sensor] = DR_MIN(DR_MAX(seen / full, 0), 1);
    r->value[sensor] = full == 1 ? r->level[sensor] : seen;
}

static void sense_cpus(dr_sim *s, dr__sim_reading *r, double dt)
{
    const double cpus = s->f.cpus, own = (s->used_workers + s->used_consumer) / dt, tenants = s->used_tenants / dt;
    const double busy = DR_MIN(own + tenants, cpus), quota = DR_MIN(s->costs.quota, cpus);
    sense(s, r, DR_SENSOR_CPU_TOTAL, busy, cpus);
    sense(s, r, DR_SENSOR_CPU_OWN, own, cpus);
    sense(s, r, DR_SENSOR_CPU_FOREIGN, tenants, cpus);
    sense(s, r, DR_SENSOR_QUOTA_USED, own, quota);
    sense(s, r, DR_SENSOR_THROTTLED, s->throttled / dt, 1);
    sense(s, r, DR_SENSOR_PRESSURE_CPU, DR_MIN(DR_MAX(s->want / cpus - 1, 0), 1), 1);
    sense(s, r, DR_SENSOR_POWER, dr__sim_watts(s, busy), s->f.full_power);
}

static void sense_storage(dr_sim *s, dr__sim_reading *r, double dt)
{
    const double in_flight = s->busy_reads / dt;
    sense(s, r, DR_SENSOR_DISK_BANDWIDTH, s->read_bytes / dt, DR_MAX(s->f.read_bw, 1e8));
    sense(s, r, DR_SENSOR_DISK_BUSY, DR_MIN(in_flight, 1), 1);
    sense(s, r, DR_SENSOR_DISK_QUEUE, in_flight, 32);
    sense(s, r, DR_SENSOR_DISK_LATENCY, s->f.read_latency / s->signal[DR__SIGNAL_DISK], 0.1);
    sense(s, r, DR_SENSOR_NET_BANDWIDTH, s->link_bytes / dt, DR_MAX(s->f.link_bw, 1.25e8));
    sense(s, r, DR_SENSOR_NET_RTT, s->f.rtt, 0.1);
}

static void sense_rest(dr_sim *s, dr__sim_reading *r, double dt)
{
    double flow[DR_N_FLOWS];
    dr__sim_flow(s, flow);
    const double others = s->signal[DR__SIGNAL_MEMORY] * s->f.memory;
    const double used = DR_MIN(others + flow[DR_FLOW_BYTES], s->f.memory);
    sense(s, r, DR_SENSOR_MEM_USED, used, s->f.memory);
    sense(s, r, DR_SENSOR_MEM_AVAILABLE, s->f.memory - used, s->f.memory);
    sense(s, r, DR_SENSOR_MEM_BANDWIDTH, s->rate * s->f.moved_bytes, s->f.memory_bw);
    sense(s, r, DR_SENSOR_GPU_BUSY, s->accel_s / dt, 1);
    sense(s, r, DR_SENSOR_FILL_BATCH, flow[DR_FLOW_READY] / DR_MAX(s->window, 1), 1);
    sense(s, r, DR_SENSOR_FILL_DECODE, flow[DR_FLOW_OPEN] / DR_MAX(s->window, 1), 1);
    sense(s, r, DR_SENSOR_CACHE_HITS, s->costs.hits, 1);
    sense(s, r, DR_SENSOR_CACHE_FILL, flow[DR_FLOW_CACHE_FILL], 1);
    sense(s, r, DR_SENSOR_IN_FLIGHT, flow[DR_FLOW_BYTES], flow[DR_FLOW_BYTES_LIMIT]);
}

void dr__sim_sense(dr_sim *s)
{
    dr__sim_reading *r = &s->readings[s->n_readings++ % DR__SIM_DELAYED];
    memset(r, 0, sizeof *r);
    sense_cpus(s, r, DR__SIM_SNAPSHOT_S);
    sense_storage(s, r, DR__SIM_SNAPSHOT_S);
    sense_rest(s, r, DR__SIM_SNAPSHOT_S);
    s->used_workers = s->used_consumer = s->used_tenants = s->throttled = 0;
    s->read_bytes = s->link_bytes = s->accel_s = s->busy_reads = 0;
}

void dr_sim_snapshot(const dr_sim *s, dr_snapshot *out)
{
    static const uint64_t always = 1ull << DR_SENSOR_CPU_OWN | 1ull << DR_SENSOR_CPU_FOREIGN |
                                   1ull << DR_SENSOR_CPU_TOTAL | 1ull << DR_SENSOR_QUOTA_USED; /* of every Linux */
    static const int sensed[] = {
        DR_SENSOR_THROTTLED,  DR_SENSOR_PRESSURE_CPU, DR_SENSOR_POWER,         DR_SENSOR_DISK_BANDWIDTH,
        DR_SENSOR_DISK_BUSY,  DR_SENSOR_DISK_QUEUE,   DR_SENSOR_DISK_LATENCY,  DR_SENSOR_NET_BANDWIDTH,
        DR_SENSOR_NET_RTT,    DR_SENSOR_MEM_USED,     DR_SENSOR_MEM_AVAILABLE, DR_SENSOR_MEM_BANDWIDTH,
        DR_SENSOR_GPU_BUSY,   DR_SENSOR_FILL_BATCH,   DR_SENSOR_FILL_DECODE,   DR_SENSOR_CACHE_HITS,
        DR_SENSOR_CACHE_FILL, DR_SENSOR_IN_FLIGHT,
    };
    const uint64_t delay = (uint64_t)(s->f.sensor_delay / DR__SIM_SNAPSHOT_S + 0.5);
    const uint64_t number = s->n_readings > delay ? s->n_readings - 1 - delay : 0;
    const dr__sim_reading *r = &s->readings[number % DR__SIM_DELAYED];
    memset(out, 0, sizeof *out);
    out->time_ns = (uint64_t)((s->time + FIRST_S) * 1e9 + 0.5);
    out->number = s->n_readings;
    out->n_cpus = (uint32_t)s->f.cpus;
    out->present = always;
    for (size_t i = 0; i < DR_COUNT(sensed); i++)
        out->present |= s->present & 1ull << sensed[i];
    for (int i = 0; i < DR_N_SENSORS; i++)
        if (out->present >> i & 1) {
            out->value[i] = r->value[i];
            out->level[i] = r->level[i];
        }
}
