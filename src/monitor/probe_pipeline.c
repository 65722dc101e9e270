/* probe_pipeline.c: queues, service times and waits of the pipelines that registered. */
#include "monitor/probe.h"

#include <math.h>

#include "monitor/pipeline_facts.h"

/* All facts are doubles, and are summed as an array. */
enum { N_FACTS = sizeof(dr__pipeline_facts) / sizeof(double) };

struct mean {
    double sum[N_FACTS];
    int n[N_FACTS];
};

static void add(struct mean *mean, const dr__pipeline_facts *facts)
{
    const double *f = (const double *)facts;
    for (int i = 0; i < N_FACTS; i++)
        if (isfinite(f[i])) {
            mean->sum[i] += f[i];
            mean->n[i]++;
        }
}

static dr__pipeline_facts finish(const struct mean *mean)
{
    dr__pipeline_facts facts;
    double *f = (double *)&facts;
    for (int i = 0; i < N_FACTS; i++)
        f[i] = mean->n[i] ? mean->sum[i] / mean->n[i] : NAN;
    const int in_flight = offsetof(dr__pipeline_facts, in_flight_bytes) / sizeof(double);
    const int limit = offsetof(dr__pipeline_facts, in_flight_limit) / sizeof(double);
    facts.in_flight_bytes *= mean->n[in_flight];
    facts.in_flight_limit *= mean->n[limit];
    return facts;
}

static void sense(const dr__pipeline_facts *f, dr_snapshot *out)
{
    double demand_s = f->demand_ns > 0 ? f->demand_ns * 1e-9 : 1;
    for (int i = 0; i < DR__N_STAGES; i++) {
        dr__sense(out, (dr_sensor)(DR_SENSOR_FILL_FETCH + i), f->queue_fill[i], 1);
        dr__sense(out, (dr_sensor)(DR_SENSOR_SERVICE_FETCH + i), f->service_ns[i] * 1e-9, demand_s);
    }
    dr__sense(out, DR_SENSOR_BATCH_LATENCY, f->batch_latency_ns * 1e-9, 1);
    dr__sense(out, DR_SENSOR_CONSUMER_WAIT, f->consumer_wait, 1);
    dr__sense(out, DR_SENSOR_CACHE_HITS, f->cache_hits, 1);
    dr__sense(out, DR_SENSOR_CACHE_FILL, f->cache_fill, 1);
    dr__sense(out, DR_SENSOR_IN_FLIGHT, f->in_flight_bytes, f->in_flight_limit);
}

static void open_nothing(void *state, dr__host *host)
{
    (void)state, (void)host;
}

static dr__pipeline_facts unknown(void)
{
    struct mean none = { 0 };
    return finish(&none);
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)state, (void)now_ns, (void)elapsed_ns;
    dr__hook hooks[DR__MAX_HOOKS];
    struct mean mean = { 0 };
    int n = dr__hooks_begin(&host->pipelines, hooks);
    for (int i = 0; i < n; i++) {
        dr__pipeline_facts facts = unknown();
        if (!dr__hooks_has(&host->pipelines, hooks[i].token))
            continue;
        hooks[i].pipeline(hooks[i].user, &facts);
        add(&mean, &facts);
    }
    dr__hooks_end(&host->pipelines);
    dr__pipeline_facts all = finish(&mean);
    sense(&all, out);
}

const dr__probe_def dr__probe_pipeline = {
    .name = "pipeline",
    .summary = "queues, service times and waits of running pipelines",
    .open = open_nothing,
    .read = tick,
};
