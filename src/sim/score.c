/* score.c: what really happened, without noise, and the reward of each second by it. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/reward.h"
#include "sim/twin.h"

static const double SECOND = 1;

double dr__sim_watts(const dr_sim *s, double busy_cpus)
{
    const double load = DR_MIN(busy_cpus / s->f.cpus, 1);
    return s->f.idle_power + (s->f.full_power - s->f.idle_power) * (load + load * load) / 2;
}

dr_weights dr__sim_weights(const dr_sim *s)
{
    dr_weights w = s->weights;
    w.of[DR_TERM_HOST] *= s->signal[DR__SIGNAL_PRICE];
    w.of[DR_TERM_ENERGY] += s->signal[DR__SIGNAL_ENERGY];
    return w;
}

/* Samples a second that the consumer would take, as far as all CPUs that we may use could make them. */
static double asked_rate(const dr_sim *s)
{
    const double cpus = DR_MIN(s->f.cpus, s->costs.quota), each = s->costs.cpu + s->f.slow_share * s->costs.slow_cpu;
    return DR_MIN(s->batch / s->costs.step_s, cpus / each);
}

static double unit(double x)
{
    return DR_MIN(DR_MAX(x, 0), 1);
}

static void end_second(dr_sim *s, double seconds)
{
    double term[DR_N_TERMS] = { 0 };
    const dr_weights w = dr__sim_weights(s);
    const double cpus = DR_MIN(s->f.cpus, s->costs.quota);
    term[DR_TERM_THROUGHPUT] = s->second_asked > 0 ? unit(s->second_samples / s->second_asked) : 0;
    term[DR_TERM_LATENCY] = s->second_batches > 0 ? unit(s->second_latency / s->second_batches) : 0;
    term[DR_TERM_ENERGY] = unit(s->second_joule / seconds / s->f.full_power);
    term[DR_TERM_IDLE] = unit(s->second_wait / seconds);
    term[DR_TERM_HOST] = unit(s->second_cpu / seconds / cpus);
    s->all.reward += dr__reward_of(term, w.of);
    for (int i = 0; i < DR_N_TERMS; i++)
        s->all.term[i] += term[i];
    s->n_seconds++;
    s->second_begun = s->time;
    s->trained_before = s->trained;
    s->second_samples = s->second_wait = s->second_cpu = s->second_joule = s->second_asked = 0;
    s->second_latency = s->second_batches = 0;
}

/* What grew since `all` was brought up to date. */
void dr__sim_score(dr_sim *s)
{
    const double dt = DR__SIM_TICK_S, samples = s->flow[DR_FLOW_SAMPLES], wait = s->flow[DR_FLOW_WAIT];
    const double cpu = s->all_used_before;
    const double used = s->used_workers + s->used_consumer, grown = used >= cpu ? used - cpu : used;
    const double tenants = dr__sim_tenants(s);
    const double joule = dr__sim_watts(s, DR_MIN(grown / dt + tenants, s->f.cpus)) * dt;
    s->all_used_before = used;
    s->second_samples = s->trained - s->trained_before;
    s->second_wait += wait - s->all.wait;
    s->second_latency += s->flow[DR_FLOW_LATENCY] - s->all.latency;
    s->second_batches += s->flow[DR_FLOW_BATCHES] - s->all.batches;
    s->second_cpu += grown;
    s->second_joule += joule;
    s->second_asked += asked_rate(s) * dt;
    s->all.seconds = s->time;
    s->all.samples = samples;
    s->all.wait = wait;
    s->all.latency = s->flow[DR_FLOW_LATENCY];
    s->all.batches = s->flow[DR_FLOW_BATCHES];
    s->all.cpus += grown;
    s->all.watts += joule;
    s->all.cache_hits = s->flow[DR_FLOW_CACHE_HITS];
    for (int i = 0; i < DR_N_KNOBS; i++)
        s->all.knob[i] += s->knob[i] * dt;
    if (s->time - s->second_begun >= SECOND - dt / 2)
        end_second(s, s->time - s->second_begun);
}

void dr_sim_look(const dr_sim *s, dr_sim_result *out)
{
    *out = s->all;
    const double seconds = DR_MAX(s->time, DR__SIM_TICK_S), n = (double)DR_MAX(s->n_seconds, 1);
    out->wait /= seconds;
    out->cpus /= seconds;
    out->watts /= seconds;
    out->latency /= DR_MAX(out->batches, 1);
    out->throttled /= seconds;
    out->cache_hits /= DR_MAX(s->done, 1);
    out->reward /= n;
    out->ticks = s->ticks;
    for (int i = 0; i < DR_N_TERMS; i++)
        out->term[i] /= n;
    for (int i = 0; i < DR_N_KNOBS; i++)
        out->knob[i] /= seconds;
}
