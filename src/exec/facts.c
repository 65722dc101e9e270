/* facts.c: a loader's flow between two ticks of the monitor, as shares and as times per sample. */
#include "exec/facts.h"

#include <math.h>

#include "base/clock.h"

void dr__facts_init(dr__facts *f, dr__exec *e)
{
    *f = (dr__facts){ .exec = e };
    double *all = (double *)&f->last;
    for (size_t i = 0; i < sizeof f->last / sizeof *all; i++)
        all[i] = NAN;
}

/* Sets a mean time in ns if anything happened in the interval; else keeps the last one. */
static void note_time(double *at, double seconds, double n)
{
    if (n > 0)
        *at = seconds * 1e9 / n;
}

static void note_times(dr__facts *f, const double *d, double finish_s)
{
    dr__pipeline_facts *last = &f->last;
    note_time(&last->service_ns[DR__STAGE_FETCH], d[DR_FLOW_READ], d[DR_FLOW_WORKED]);
    note_time(&last->service_ns[DR__STAGE_DECODE], d[DR_FLOW_WORK], d[DR_FLOW_WORKED]);
    note_time(&last->service_ns[DR__STAGE_SLOW], d[DR_FLOW_SLOW_WORK], d[DR_FLOW_SLOW]);
    note_time(&last->service_ns[DR__STAGE_BATCH], finish_s, d[DR_FLOW_WORKED]);
    note_time(&last->demand_ns, d[DR_FLOW_STEP], d[DR_FLOW_SAMPLES]);
    note_time(&last->batch_latency_ns, d[DR_FLOW_LATENCY], d[DR_FLOW_BATCHES]);
    const double looked_for = d[DR_FLOW_CACHE_HITS] + d[DR_FLOW_CACHE_MISSES];
    if (looked_for > 0)
        last->cache_hits = d[DR_FLOW_CACHE_HITS] / looked_for;
}

/* Computes the facts that need two readings. */
static void compare(dr__facts *f, const double *now, double finish_s, uint64_t now_ns)
{
    double change[DR_N_FLOWS];
    for (int i = 0; i < DR_N_FLOWS; i++)
        change[i] = now[i] - f->before[i];
    note_times(f, change, finish_s - f->finish_before);
    const double seconds = (double)(now_ns - f->before_ns) * 1e-9;
    f->last.consumer_wait = seconds > 0 ? DR_MIN(change[DR_FLOW_WAIT] / seconds, 1) : NAN;
}

void dr__facts_fill(void *user, dr__pipeline_facts *out)
{
    dr__facts *f = user;
    dr__exec *e = f->exec;
    double now[DR_N_FLOWS] = { 0 };
    dr__exec_flow(e, now);
    const uint64_t now_ns = dr__now_ns();
    const double finish_s = (double)atomic_load(&e->stats.finish_ns) * 1e-9;
    if (f->begun)
        compare(f, now, finish_s, now_ns);
    for (int i = 0; i < DR_N_FLOWS; i++)
        f->before[i] = now[i];
    f->before_ns = now_ns;
    f->finish_before = finish_s;
    f->begun = true;
    *out = f->last;
    const dr__fill fill = dr__exec_fill(e);
    out->queue_fill[DR__STAGE_FETCH] = fill.unclaimed;
    out->queue_fill[DR__STAGE_DECODE] = fill.fetched;
    out->queue_fill[DR__STAGE_BATCH] = fill.ready;
    out->queue_fill[DR__STAGE_SLOW] = fill.parked;
    if (e->cache)
        out->cache_fill = now[DR_FLOW_CACHE_FILL];
    out->in_flight_bytes = now[DR_FLOW_BYTES];
    out->in_flight_limit = now[DR_FLOW_BYTES_LIMIT];
}
