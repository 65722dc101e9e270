/* observe.c: ticks into windows, windows into observations. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/observation.h"
#include "sched/tables.h"

static const double LEAST_STEP = 0.002; /* share of a consumer's time: one that only takes asks for no more than 500
                                           times of what it gets */

static const double INEXACT = 0.03;  /* of own CPU time: workers' is counted a sample at a time */
static const double PRESSURE = 0.05; /* share of time: less of it and nobody waited for a CPU */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* A snapshot has the quota only as the share that is used of it.  One that is used up is at most what is used. */
static double find_quota(const dr_snapshot *s, double known)
{
    double used = s->value[DR_SENSOR_QUOTA_USED], level = s->level[DR_SENSOR_QUOTA_USED];
    if (!(s->present >> DR_SENSOR_QUOTA_USED & 1) || !(level > 0))
        return known;
    if (level < 1)
        return used / level;
    return known > 0 ? DR_MIN(known, used) : used;
}

void dr__tick_fill(dr__tick *t, const dr_snapshot *s, const double flow[DR_N_FLOWS], double *quota_cpus)
{
    t->quota_cpus = *quota_cpus = find_quota(s, *quota_cpus);
    t->time_ns = s->time_ns;
    t->present = s->present;
    t->n_cpus = s->n_cpus;
    memcpy(t->value, s->value, sizeof t->value);
    memcpy(t->level, s->level, sizeof t->level);
    for (int i = 0; i < DR_N_FLOWS; i++)
        t->flow[i] = isfinite(flow[i]) ? flow[i] : 0;
}

void dr__window_begin(dr__window *w, const dr__tick *first)
{
    memset(w, 0, sizeof *w);
    w->first = w->last = *first;
    w->least_ready = w->most_ready = first->flow[DR_FLOW_READY];
}

void dr__window_add(dr__window *w, const dr__tick *t)
{
    for (int i = 0; i < DR_N_SENSORS; i++)
        if (t->present >> i & 1) {
            w->value[i] += t->value[i];
            w->level[i] += t->level[i];
            w->n_sensed[i]++;
        }
    for (int i = 0; i < DR_N_FLOWS; i++)
        w->gauge[i] += t->flow[i];
    w->least_ready = DR_MIN(w->least_ready, t->flow[DR_FLOW_READY]);
    w->most_ready = DR_MAX(w->most_ready, t->flow[DR_FLOW_READY]);
    w->n_ticks++;
    w->last = *t;
}

double dr__window_seconds(const dr__window *w)
{
    return (double)(w->last.time_ns - w->first.time_ns) * 1e-9;
}

double dr__window_went(const dr__window *w, int flow)
{
    return DR_MAX(w->last.flow[flow] - w->first.flow[flow], 0);
}

/* --- what follows from what was seen --- */

static void derive_cpus(dr__observation *o, double n_cpus)
{
    const dr__terms_of_use *u = &o->use;
    o->machine_cpus = n_cpus > 0 ? n_cpus : DR_MAX(u->affinity_cpus, 1);
    if (u->affinity_cpus > 0)
        o->machine_cpus = DR_MIN(o->machine_cpus, u->affinity_cpus);
    if (!(o->quota_cpus > 0) || o->quota_cpus > o->machine_cpus)
        o->quota_cpus = o->machine_cpus;
    double most = u->cpu_limit > 0 ? u->cpu_limit : u->cpu_share;
    o->cpus = most > 0 ? DR_MIN(most, o->quota_cpus) : o->quota_cpus;
    double ours = n_cpus > 0 ? o->machine_cpus / n_cpus : 1; /* others run everywhere, also where we may not */
    o->foreign_cpus =
        DR_MIN((o->sensor[DR_SENSOR_CPU_FOREIGN] + o->sensor[DR_SENSOR_CPU_STEAL]) * ours, o->machine_cpus);
    o->consumer_cpus = DR_MAX((1 - INEXACT) * o->sensor[DR_SENSOR_CPU_OWN] - o->flow[DR_FLOW_CPU], 0);
    double busy = o->sensor[DR_SENSOR_CPU_TOTAL] + o->sensor[DR_SENSOR_CPU_STEAL];
    o->cpu_load = DR_MIN(n_cpus > 0 ? busy / n_cpus : o->level[DR_SENSOR_CPU_TOTAL], 1);
}

/* Work is decoding and augmenting.  Where it takes longer than its CPU time, threads waited for a CPU or were blocked.
 * How long they waited for a CPU is told, or taken to be all of it, as far as more threads want one than there are. */
static void derive_stretch(dr__observation *o)
{
    double threads = o->knob[DR_KNOB_WORKERS] + o->knob[DR_KNOB_READERS], ours = threads + o->consumer_cpus;
    double left = DR_MAX(o->machine_cpus - o->foreign_cpus, 0.05 * o->machine_cpus); /* by others */
    double most = ours / DR_MIN(left, o->quota_cpus);
    bool calm = dr__senses(o, DR_SENSOR_PRESSURE_CPU) && o->sensor[DR_SENSOR_PRESSURE_CPU] < PRESSURE &&
                o->quota_cpus >= o->machine_cpus;
    double wanted = o->use.tells_delay ? o->flow[DR_FLOW_CPU] + o->flow[DR_FLOW_DELAY] : o->flow[DR_FLOW_WORK];
    double seen = ratio(wanted, o->flow[DR_FLOW_CPU]);
    o->stretch = calm ? 1 : DR_MAX(DR_MIN(seen, most), 1);
    o->busy = DR_MIN(ratio(o->flow[DR_FLOW_READ] + o->flow[DR_FLOW_WORK], DR_MAX(threads, 1)), 1);
    o->wanting = o->use.tells_delay ? DR_MIN(ratio(wanted, DR_MAX(threads, 1)), o->busy) : o->busy;
}

/* Threads that the consumer computes on, beside each other.  Where nothing tells of them, they are at least as many as
 * CPUs that it uses while it does not wait. */
static void derive_threads(dr__observation *o)
{
    double used = o->consumer_cpus / DR_MAX(1 - o->wait, 0.02);
    double told = dr__senses(o, DR_SENSOR_OWN_THREADS) ? o->sensor[DR_SENSOR_OWN_THREADS] : used;
    o->consumer_threads = DR_MIN(DR_MAX(told, 1), o->machine_cpus);
}

/* A consumer that waits now and got nothing has waited, whenever that is counted. */
static void derive_demand(dr__observation *o)
{
    double wait = o->flow[DR_FLOW_WAIT], step = o->flow[DR_FLOW_STEP], all = wait + step;
    double lost = o->consumer_cpus * (o->stretch - 1) * o->wanting; /* of its steps, to our workers */
    o->rate = o->flow[DR_FLOW_SAMPLES];
    if (o->flow[DR_FLOW_BATCHES] > 0 && all > 0) {
        o->wait = wait / all;
        o->demand = o->rate * all / DR_MAX(DR_MAX(step - lost, step / 2), LEAST_STEP * all);
    } else {
        o->wait = DR_MIN(o->flow[DR_FLOW_CONSUMERS], 1);
        o->demand = 0;
    }
}

void dr__observation_derive(dr__observation *o, double n_cpus)
{
    double worked = o->work_rate = o->flow[DR_FLOW_WORKED];
    o->cpu_each = ratio(o->flow[DR_FLOW_CPU], worked);
    o->read_each = ratio(o->flow[DR_FLOW_READ], worked);
    o->work_each = ratio(o->flow[DR_FLOW_WORK], worked);
    o->delay_each = ratio(o->flow[DR_FLOW_DELAY], worked);
    o->latency = ratio(o->flow[DR_FLOW_LATENCY], o->flow[DR_FLOW_BATCHES]);
    o->batch_samples = DR_MAX(o->flow[DR_FLOW_BATCH_SAMPLES], 1);
    o->memory_limit = o->flow[DR_FLOW_BYTES_LIMIT];
    if (o->use.memory_limit > 0 && (o->memory_limit <= 0 || o->use.memory_limit < o->memory_limit))
        o->memory_limit = o->use.memory_limit;
    derive_cpus(o, n_cpus);
    derive_stretch(o);
    derive_demand(o);
    derive_threads(o);
}

void dr__window_observe(const dr__window *w, const dr__terms_of_use *use, const double knob[DR_N_KNOBS],
                        dr__observation *o)
{
    memset(o, 0, sizeof *o);
    o->time_ns = w->last.time_ns;
    o->span = dr__window_seconds(w);
    o->use = *use;
    memcpy(o->knob, knob, sizeof o->knob);
    for (int i = 0; i < DR_N_SENSORS; i++)
        if (w->n_sensed[i]) {
            o->present |= 1ull << i;
            o->sensor[i] = w->value[i] / w->n_sensed[i];
            o->level[i] = w->level[i] / w->n_sensed[i];
        }
    for (int i = 0; i < DR_N_FLOWS; i++)
        o->flow[i] = dr__flow_is_sum(i) ? ratio(dr__window_went(w, i), o->span) : ratio(w->gauge[i], w->n_ticks);
    o->least_ready = w->least_ready;
    o->most_ready = w->most_ready;
    o->batches = dr__window_went(w, DR_FLOW_BATCHES);
    o->quota_cpus = w->last.quota_cpus;
    dr__observation_derive(o, w->last.n_cpus);
}
