/* policy_analytic.c: what a sample costs, what the consumer asks for and what the CPUs give, and from these the least
 * that covers it.
 *
 *   workers    the fewest whose predicted reward is the best, from measured costs and demand, shared CPUs and the
 *              user's weights (plant_model.h); fewer only where that stays so with demand a third higher
 *   fetchers   where reading blocks: as many as there are reads under way at that rate (Little's law)
 *   prefetch   as many batches as are under way at that rate (Little's law), and some more for how they vary: more
 *              where the consumer waits though the workers could keep up, less where they lie ready unused
 *   ceiling    the user's cpu_limit
 *   priority   below the trainer's while it wants the same CPUs and does not wait, and nobody else does
 */
#include <math.h>
#include <stdio.h>

#include "base/compiler.h"
#include "sched/plant_model.h"
#include "sched/policy.h"

static const double MARGIN = 1.15, DOWN_MARGIN = 1.3; /* capacity over demand */
static const double GAIN = 0.01;                      /* of the weights: less is not worth a change */
static const double FULL = 0.9;                       /* load of a machine on which threads wait for CPUs */
static const double NOISE = 0.1;                      /* of the CPU time: time that is lost without blocking */
static const double KEEPS_UP = 0.01;                  /* share of its time that a consumer may wait */
enum { MOST_PER_CPU = 2 };                            /* workers that want a CPU, for each there is */

struct state {
    double cpu, block, read, trainer, demand, latency, foreign; /* smoothed */
    double cover;                                               /* batches beyond those under way */
    int calm;                                                   /* decisions in which batches lay ready unused */
};

/* --- costs --- */

static void smooth(double *mean, double now, bool sudden)
{
    *mean = *mean > 0 && !sudden ? (*mean + now) / 2 : now;
}

/* By how much threads are slowed down because others use their CPUs. */
static double stretch_of(const dr__observation *o)
{
    return o->cpu_load > FULL && o->flow[DR_FLOW_CPU] > 0 ? DR_MAX(o->flow[DR_FLOW_WORK] / o->flow[DR_FLOW_CPU], 1) : 1;
}

/* Seconds of a sample in which a thread wants no CPU.  Time without a CPU because others have it is none of these. */
static double block_of(const dr__observation *o)
{
    double idle = o->read_each + o->work_each - stretch_of(o) * o->cpu_each;
    if (o->cpu_load > FULL)
        idle = DR_MIN(idle, o->read_each);
    return DR_MAX(idle - NOISE * o->cpu_each, 0);
}

static void learn(struct state *s, const dr__observation *o)
{
    if (o->cpu_each > 0) {
        smooth(&s->cpu, o->cpu_each, o->sudden);
        smooth(&s->read, o->read_each, o->sudden);
        if (o->sensor[DR_SENSOR_THROTTLED] < KEEPS_UP)
            smooth(&s->block, block_of(o), o->sudden);
    }
    if (o->rate > 0)
        smooth(&s->trainer, o->trainer_cpus / o->rate, o->sudden);
    if (o->demand > 0)
        smooth(&s->demand, o->demand, o->sudden);
    if (o->latency > 0)
        smooth(&s->latency, o->latency, o->sudden);
    smooth(&s->foreign, o->foreign_cpus * stretch_of(o), o->sudden);
}

static double level_of(const dr__observation *o, int sensor)
{
    return dr__senses(o, sensor) ? o->level[sensor] : -1;
}

static dr__plant_model model_of(const struct state *s, const dr__observation *o)
{
    return (dr__plant_model){
        .cpu = s->cpu,
        .block = s->block,
        .trainer = s->trainer,
        .demand = s->demand,
        .foreign = s->foreign,
        .machine_cpus = o->machine_cpus,
        .quota_cpus = o->quota_cpus,
        .cpus = o->cpus,
        .batch_samples = o->batch_samples,
        .levels = { level_of(o, DR_SENSOR_MEM_USED), level_of(o, DR_SENSOR_DISK_BUSY),
                    level_of(o, DR_SENSOR_GPU_BUSY) },
    };
}

/* --- knobs --- */

static double least_gain(const dr_weights *w)
{
    double size = 0;
    for (int i = 0; i < DR_N_TERMS; i++)
        size += w->of[i];
    return GAIN * size;
}

static double choose_workers(const dr__plant_model *m, const dr__observation *o)
{
    const dr_weights *w = &o->use.weights;
    double now = o->knob[DR_KNOB_WORKERS], least = DR_MAX(o->use.least[DR_KNOB_WORKERS], 1), best = least, gain = -1e9;
    double crowd = MOST_PER_CPU * ceil(m->cpus) * (m->cpu + m->block) / m->cpu;
    double most = DR_MAX(DR_MIN(o->use.most[DR_KNOB_WORKERS], ceil(crowd)), least);
    for (double n = least; n <= most; n++) {
        double reward = dr__plant_reward(m, w, n, MARGIN);
        if (reward > gain) {
            gain = reward;
            best = n;
        }
    }
    double slack = least_gain(w);
    if (best > now)
        return gain - dr__plant_reward(m, w, now, MARGIN) > slack || now < least ? best : now;
    bool still = dr__plant_reward(m, w, best, DOWN_MARGIN) >= dr__plant_reward(m, w, now, DOWN_MARGIN) - slack;
    return still || now > most ? best : now;
}

/* Reads under way at a rate; 0 where reading hardly blocks. */
static double choose_fetchers(const struct state *s, const dr__observation *o, double rate)
{
    double now = o->knob[DR_KNOB_FETCHERS], blocked = DR_MIN(s->block, s->read);
    if (blocked < (now > 0 ? 0.1 : 0.25) * (s->cpu + s->block))
        return 0;
    double need = ceil(rate * s->read * MARGIN);
    return need > now || need < now / 1.5 ? DR_MAX(need, 1) : now;
}

/* Batches beyond those under way: grows where the consumer waits without need, shrinks where they lie unused. */
static void adapt_cover(struct state *s, const dr__observation *o, double capacity)
{
    bool could = capacity > 1.05 * s->demand;
    if (o->wait > KEEPS_UP && could) {
        s->cover = DR_MIN(DR_MAX(2 * s->cover, 1), 32);
        s->calm = 0;
    } else if (o->wait < KEEPS_UP / 2 && o->least_ready >= 2 && s->cover > 1) {
        if (++s->calm >= 10) {
            s->cover -= 1;
            s->calm = 0;
        }
    } else {
        s->calm = 0;
    }
}

static double choose_prefetch(const struct state *s, const dr__observation *o, double rate)
{
    double now = o->knob[DR_KNOB_PREFETCH], batches = rate / o->batch_samples;
    double need = ceil(batches * s->latency + s->cover) + 1;
    return need > now || need < now - 1 || need < now / 1.3 ? DR_MAX(need, 2) : now;
}

/* Below the trainer's only while it alone wants our CPUs and does not wait. */
static double choose_priority(const dr__observation *o)
{
    double now = o->knob[DR_KNOB_PRIORITY], others = o->foreign_cpus / o->machine_cpus;
    bool wants = o->trainer_cpus > 0.25 && o->cpu_load > FULL;
    if (now >= 0)
        return wants && others < 0.05 && o->wait < 0.05 ? -1 : now;
    return others > 0.15 || o->wait > 0.15 ? 0 : now;
}

/* --- together --- */

static int bound_of(const dr__plant_model *m, const dr__observation *o, double workers, double capacity)
{
    if (o->wait <= KEEPS_UP)
        return DR_BOUND_CONSUMER;
    if (capacity >= MARGIN * m->demand)
        return DR_BOUND_AHEAD;
    if (o->flow[DR_FLOW_BYTES] > 0.9 * o->memory_limit && o->memory_limit > 0)
        return DR_BOUND_MEMORY;
    if (m->block > m->cpu && o->cpu_load < FULL)
        return DR_BOUND_STORAGE;
    if (o->sensor[DR_SENSOR_THROTTLED] > 0.02 || m->quota_cpus < m->machine_cpus)
        return DR_BOUND_QUOTA;
    if (o->cpu_load > FULL)
        return m->foreign > 0.25 * m->machine_cpus ? DR_BOUND_FOREIGN : DR_BOUND_CPU;
    return dr__plant_cpus(m, workers) > 0.9 * m->cpus ? DR_BOUND_CPU : DR_BOUND_WORKERS;
}

static void decide(void *state, const dr__observation *o, dr__wish *wish)
{
    struct state *s = state;
    learn(s, o);
    if (!(s->cpu > 0) || !(s->demand > 0)) {
        snprintf(wish->reason, sizeof wish->reason, "%.1f s and no batch yet", o->span);
        return;
    }
    dr__plant_model m = model_of(s, o);
    double now = o->knob[DR_KNOB_WORKERS];
    double workers = dr__may_turn(o, DR_KNOB_WORKERS) ? choose_workers(&m, o) : now;
    double here = dr__plant_capacity(&m, DR_MAX(now, 1)), capacity = dr__plant_capacity(&m, DR_MAX(workers, 1));
    double rate = DR_MIN(capacity, m.demand);
    adapt_cover(s, o, here);
    wish->bound = bound_of(&m, o, now, here);
    wish->knob[DR_KNOB_WORKERS] = workers;
    wish->knob[DR_KNOB_FETCHERS] = choose_fetchers(s, o, rate);
    wish->knob[DR_KNOB_PREFETCH] = choose_prefetch(s, o, rate);
    wish->knob[DR_KNOB_PRIORITY] = choose_priority(o);
    if (o->use.cpu_limit > 0)
        wish->knob[DR_KNOB_CPU_CEILING] = o->use.cpu_limit;
    snprintf(
        wish->reason, sizeof wish->reason,
        "asks %.0f/s, waits %.0f %%; %g workers make %.0f/s at %.2f of %.2g CPUs (%.3g ms CPU, %.3g ms blocked each; "
        "others %.2f)",
        m.demand, 100 * o->wait, now, here, dr__plant_cpus(&m, DR_MAX(now, 1)), m.cpus, 1e3 * m.cpu, 1e3 * m.block,
        m.foreign);
}

const dr__policy_def dr__policy_analytic = {
    .name = "analytic",
    .doc = "the fewest workers and batches that cover the demand, from measured costs, CPUs and others' load",
    .state_bytes = sizeof(struct state),
    .decide = decide,
};
