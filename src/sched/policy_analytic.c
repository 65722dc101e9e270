/* policy_analytic.c: what a sample costs, what the consumer asks for and what the CPUs give, and from these the least
 * that covers it.
 *
 *   workers    the fewest whose predicted reward is the best, from measured costs and demand, shared CPUs and the
 *              user's weights (plant_model.h); fewer only where that stays so with demand a third higher
 *   readers   where reading blocks: as many as there are reads in flight at that rate (Little's law)
 *   prefetch   as many batches as are in flight at that rate, and some more for how they vary; as many as the user's
 *              memory holds, where some was granted (prefetch_cover.h)
 *   bytes      what these batches take, where memory is short
 *   priority   left alone: below a consumer that fills the CPUs, workers starve
 */
#include "sched/policy_analytic.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

static const double FULL = 0.9;                   /* load of a machine without a free CPU */
static const double NO_STEP = 0.9;                /* a consumer that waits so much does nothing else */
static const double FEW = 0.1;                    /* of the workers: fewer by less is no gain */
static const double FAR = 20;                     /* of a sample's CPU time: no wait for a CPU is so long */
static const double WORTH_SAYING = 0.05;          /* of the CPU time, of the CPUs */
static const double STALLED = 0.3;                /* share of time that tasks wait for storage */
enum { FIRST_MEMORY = 60, LONGEST_MEMORY = 960 }; /* decisions */

enum { MARGIN, DOWN_MARGIN, GAIN, PER_CPU, WAIT, SPARE, RESERVE, N_PARAMS };

static const dr__policy_param params[] = {
    [MARGIN] = { "margin", 1, 4, 1.15, "capacity that is wanted, as a multiple of the demand" },
    [DOWN_MARGIN] = { "down_margin", 1, 4, 1.3, "multiple of the demand that fewer workers must still cover" },
    [GAIN] = { "gain", 0, 1, 0.01, "least gain of reward that is worth more workers, as a share of the weights' sum" },
    [PER_CPU] = { "per_cpu", 1, 16, 2, "most workers that want a CPU, for each CPU" },
    [WAIT] = { "wait", 0, 0.5, 0.01, "share of its time that the consumer may wait before anything is done about it" },
    [SPARE] = { "spare", 0, 4, 0.25, "batches to spare where readers read, as a share of those in flight" },
    [RESERVE] = { "reserve", 0, 0.9, 0.7, "share of a memory_limit that the user gave which batches made ahead fill" },
};

/* --- workers --- */

static double level_of(const dr__observation *o, int sensor)
{
    return dr__senses(o, sensor) ? o->level[sensor] : -1;
}

dr__plant_model dr__analytic_model(const dr__costs *c, const dr__observation *o, bool split)
{
    return (dr__plant_model){
        .cpu = c->cpu,
        .block = c->block_work + (split ? 0 : c->block_read),
        .consumer = c->consumer,
        .threads = o->consumer_threads,
        .demand = c->demand,
        .foreign = c->foreign,
        .machine_cpus = o->machine_cpus,
        .quota_cpus = o->quota_cpus,
        .cpus = o->cpus,
        .batch_samples = o->batch_samples,
        .has_power = dr__senses(o, DR_SENSOR_POWER),
        .levels = { level_of(o, DR_SENSOR_MEM_USED), level_of(o, DR_SENSOR_DISK_BUSY),
                    level_of(o, DR_SENSOR_GPU_BUSY) },
    };
}

static double least_gain(const dr_weights *w, const double *param)
{
    double size = 0;
    for (int i = 0; i < DR_N_TERMS; i++)
        size += w->of[i];
    return param[GAIN] * size;
}

static double best_workers(const dr__plant_model *m, const dr_weights *w, double most, double margin)
{
    double best = 1, most_reward = dr__plant_reward(m, w, 1, margin);
    for (double n = 2; n <= most; n++) {
        double reward = dr__plant_reward(m, w, n, margin);
        if (reward > most_reward) {
            most_reward = reward;
            best = n;
        }
    }
    return best;
}

/* A consumer that computes on all our CPUs at once, in threads that wait for each other, is held up for as long as one
 * of them shares its CPU: the same work by fewer workers takes longer.  So there are no fewer workers than CPUs beside
 * it. */
static bool trains_beside(const dr__observation *o)
{
    return o->consumer_cpus > 0.25 * o->machine_cpus && o->cpu_load > FULL && o->knob[DR_KNOB_WORKERS] <= ceil(o->cpus);
}

/* Of samples that wait far more than they compute, even many workers make few of what the CPUs could: there the reward
 * hardly moves. */
static bool brings_more(const dr__plant_model *m, double now, double up)
{
    double before = DR_MIN(dr__plant_capacity(m, now), m->demand), after = DR_MIN(dr__plant_capacity(m, up), m->demand);
    return m->block > m->cpu && after > (1 + FEW) * before;
}

static double most_workers(const dr__plant_model *m, const dr__observation *o, double per_cpu)
{
    double crowd = ceil(0.95 * per_cpu * ceil(m->cpus) * (m->cpu + m->block) / m->cpu);
    return DR_MIN(o->use.most[DR_KNOB_WORKERS], DR_MAX(crowd, 1));
}

/* More where that is clearly better; fewer only where they would do for a higher demand, too; between them it rests. */
static double choose_workers(const dr__plant_model *m, const dr__observation *o, const double *param)
{
    const dr_weights *w = &o->use.weights;
    double now = o->knob[DR_KNOB_WORKERS];
    double most = most_workers(m, o, param[PER_CPU]);
    double up = best_workers(m, w, most, param[MARGIN]), down = best_workers(m, w, most, param[DOWN_MARGIN]);
    if (now < 1 || now > most)
        return up;
    double gain = dr__plant_reward(m, w, up, param[MARGIN]) - dr__plant_reward(m, w, now, param[MARGIN]);
    bool better = gain > least_gain(w, param);
    if (up > now && (better || brings_more(m, now, up)))
        return up;
    return down < (1 - FEW) * now && !trains_beside(o) ? down : now;
}

/* --- readers --- */

/* Whether threads that only read are worth having: reading blocks for a good part of a sample's time.  On a machine
 * without a free CPU that cannot be told from a read that waits for a CPU, and would not help, unless it takes many
 * times what all of the sample takes of one. */
static bool should_split(const dr__costs *c, const dr__observation *o)
{
    double all = c->cpu + c->block_work + c->block_read;
    bool splits = o->knob[DR_KNOB_READERS] > 0;
    if (!dr__may_turn(o, DR_KNOB_READERS))
        return splits;
    if (splits)
        return c->block_read > 0.1 * all;
    return c->block_read > 0.25 * all && (o->cpu_load < FULL || c->block_read > FAR * c->cpu);
}

/* Reads in flight at a rate. */
static double choose_readers(const dr__costs *c, const dr__observation *o, double rate, const double *param)
{
    double now = o->knob[DR_KNOB_READERS], reads = rate * c->read;
    return 1.05 * reads > now || 1.6 * reads < now ? DR_MAX(ceil(param[MARGIN] * reads), 1) : now;
}

/* Where more threads that read or wait bring no more samples, what they wait for is the limit: they go back, and that
 * is remembered. */
static double within_storage(dr__analytic *s, const dr__observation *o, int knob, double capacity, double proposal,
                             const double *param)
{
    double now = o->knob[knob];
    bool starved = o->wait > param[WAIT] && o->work_rate < 0.9 * capacity;
    if (s->tried > 0 && now > s->tried && starved && o->work_rate < s->tried_rate * (1 + 0.3 * (now / s->tried - 1))) {
        s->most_readers = s->tried;
        s->reader_memory = s->reader_pause =
            s->reader_pause ? DR_MIN(2 * s->reader_pause, LONGEST_MEMORY) : FIRST_MEMORY;
    }
    if (s->most_readers > 0 && (s->reader_memory-- <= 0 || o->sudden))
        s->most_readers = 0;
    if (s->most_readers > 0)
        proposal = DR_MIN(proposal, s->most_readers);
    s->tried = proposal > now ? now : 0;
    s->tried_rate = o->work_rate;
    return proposal;
}

/* Only where memory is short: else the memory limit is enough. */
static double choose_bytes(const dr__observation *o, double prefetch)
{
    double now = o->knob[DR_KNOB_PREFETCH_BYTES], need = 1.25 * (prefetch + 1) * o->flow[DR_FLOW_BATCH_BYTES];
    if (!(need > 0) || (now <= 0 && o->level[DR_SENSOR_MEM_USED] < 0.75))
        return now;
    if (o->memory_limit > 0)
        need = DR_MIN(need, 0.9 * o->memory_limit);
    return fabs(need - now) > 0.25 * now ? need : now;
}

/* --- together --- */

/* Worker processes read in their own code: there only the kernel knows of reads, where it tells of them. */
static int blocked_by(const dr__analytic *s, const dr__observation *o)
{
    bool reads = s->costs.block_read >= s->costs.block_work || o->sensor[DR_SENSOR_PRESSURE_IO] > STALLED;
    return reads ? DR_BOUND_STORAGE : DR_BOUND_BLOCKED;
}

static int bound_of(const dr__analytic *s, const dr__plant_model *m, const dr__observation *o, double capacity,
                    const double *param)
{
    if (o->wait <= param[WAIT])
        return DR_BOUND_CONSUMER;
    if (o->memory_limit > 0 && o->flow[DR_FLOW_BYTES] > 0.9 * o->memory_limit)
        return DR_BOUND_MEMORY;
    if (s->costs.block_read > m->cpu && o->work_rate < 0.8 * capacity)
        return DR_BOUND_STORAGE;
    if (capacity >= param[MARGIN] * m->demand)
        return DR_BOUND_PREFETCH;
    if (m->block > m->cpu && (o->cpu_load < FULL || o->use.tells_delay))
        return blocked_by(s, o);
    if (m->quota_cpus < m->machine_cpus && o->sensor[DR_SENSOR_QUOTA_USED] > FULL * m->quota_cpus)
        return DR_BOUND_QUOTA;
    if (m->foreign > 0.25 * m->machine_cpus && o->cpu_load > FULL)
        return DR_BOUND_OTHERS;
    return o->cpu_load > FULL || o->flow[DR_FLOW_CPU] > FULL * m->cpus ? DR_BOUND_CPU : DR_BOUND_WORKERS;
}

void dr__append_reason(dr__proposal *proposal, const char *format, ...)
{
    size_t n = strlen(proposal->reason);
    va_list args;
    va_start(args, format);
    vsnprintf(proposal->reason + n, sizeof proposal->reason - n, format, args);
    va_end(args);
}

/* Decimals that a number is shown with: about three digits, and never an exponent. */
static int decimals(double value)
{
    return value >= 100 ? 0 : value >= 10 ? 1 : 2;
}

/* What others use is what was measured, and so never more than the machine has; what they want may be. */
static void explain(const dr__analytic *s, const dr__plant_model *m, const dr__observation *o, double capacity,
                    dr__proposal *proposal)
{
    double workers = o->knob[DR_KNOB_WORKERS];
    bool reads = s->costs.block_read > s->costs.block_work;
    if (o->wait < NO_STEP)
        dr__append_reason(proposal, "The consumer waits %.0f %% of its time and could take %.0f samples/s.",
                          100 * o->wait, m->demand);
    else
        dr__append_reason(proposal, "The consumer does not wait; it takes %.0f samples/s.", o->rate);
    dr__append_reason(proposal, " %g worker%s can make %.*f/s: a sample takes %.*f ms of CPU", workers,
                      workers == 1 ? "" : "s", decimals(capacity), capacity, decimals(1e3 * m->cpu), 1e3 * m->cpu);
    if (m->block > WORTH_SAYING * m->cpu)
        dr__append_reason(proposal, " and %s %.*f ms%s%s", reads ? "waits for its bytes for" : "its code waits for",
                          decimals(1e3 * m->block), 1e3 * m->block, !reads && *o->use.waits_in ? " in " : "",
                          reads ? "" : o->use.waits_in);
    dr__append_reason(proposal, ".");
    if (o->foreign_cpus > WORTH_SAYING * o->machine_cpus)
        dr__append_reason(proposal, " Other programs use %.2g of %.3g CPUs.", o->foreign_cpus, o->machine_cpus);
}

static void propose_readers(dr__analytic *s, const dr__observation *o, bool split, double capacity, const double *param,
                            dr__proposal *proposal)
{
    double *workers = &proposal->knob[DR_KNOB_WORKERS], *readers = &proposal->knob[DR_KNOB_READERS];
    if (!split && s->costs.block_read + s->costs.block_work > s->costs.cpu)
        *workers = within_storage(s, o, DR_KNOB_WORKERS, capacity, *workers, param);
    else if (split)
        *readers = within_storage(s, o, DR_KNOB_READERS, capacity,
                                  choose_readers(&s->costs, o, DR_MIN(capacity, s->costs.demand), param), param);
    else
        s->tried = s->most_readers = 0;
    if (!split && dr__may_turn(o, DR_KNOB_READERS))
        *readers = 0;
}

static bool rises(const dr__observation *o, const dr__proposal *proposal, int knob)
{
    return proposal->knob[knob] > o->knob[knob];
}

static bool propose(dr__analytic *s, const double *param, const dr__observation *o, dr__proposal *proposal)
{
    dr__costs_learn(&s->costs, o);
    bool takes_all = !(s->costs.demand > 0) && o->wait > NO_STEP;
    if (!(s->costs.cpu > 0) || (!(s->costs.demand > 0) && !takes_all)) {
        snprintf(proposal->reason, sizeof proposal->reason,
                 "Too little is known yet: %.0f samples and %.0f batches in %.1f s.", o->work_rate * o->span,
                 o->batches, o->span);
        return false;
    }
    if (takes_all)
        s->costs.demand = 10 * o->cpus / s->costs.cpu;
    bool split = should_split(&s->costs, o);
    dr__plant_model m = dr__analytic_model(&s->costs, o, split),
                    as_is = dr__analytic_model(&s->costs, o, o->knob[DR_KNOB_READERS] > 0);
    double now = DR_MAX(o->knob[DR_KNOB_WORKERS], 1), here = dr__plant_capacity(&as_is, now);
    double workers = dr__may_turn(o, DR_KNOB_WORKERS) ? choose_workers(&m, o, param) : now;
    double capacity = dr__plant_capacity(&m, workers), granted = dr__cover_granted(o, param[RESERVE]);
    dr__cover_adapt(&s->cover, &s->costs, o, here, param[WAIT]);
    proposal->bound = bound_of(s, &as_is, o, here, param);
    proposal->knob[DR_KNOB_WORKERS] = workers;
    propose_readers(s, o, split, capacity, param, proposal);
    proposal->knob[DR_KNOB_PREFETCH] =
        dr__cover_batches(&s->cover, &s->costs, o, capacity, split, param[SPARE], granted);
    if (split && (rises(o, proposal, DR_KNOB_READERS) || rises(o, proposal, DR_KNOB_PREFETCH)))
        s->cover.raised_ns = o->time_ns;
    else if (!split)
        s->cover.raised_ns = 0;
    proposal->knob[DR_KNOB_PREFETCH_BYTES] = choose_bytes(o, proposal->knob[DR_KNOB_PREFETCH]);
    explain(s, &as_is, o, here, proposal);
    if (granted > 0)
        dr__append_reason(proposal, " The memory granted holds %g batches.", granted);
    return true;
}

static void decide(void *state, const double *param, const dr__observation *o, dr__proposal *proposal)
{
    propose(state, param, o, proposal);
}

static void shift_time(void *state, int64_t by_ns)
{
    dr__analytic_shift_time(state, by_ns);
}

const dr__policy_def dr__policy_analytic = {
    .name = "analytic",
    .doc = "the fewest workers and batches that cover the demand, from measured costs, CPUs and others' load",
    .params = params,
    .n_params = N_PARAMS,
    .state_bytes = sizeof(dr__analytic),
    .state_version = 2,
    .decide = decide,
    .shift_time = shift_time,
};

/* --- for policies that begin with it --- */

bool dr__analytic_propose(dr__analytic *s, const dr__observation *o, dr__proposal *proposal)
{
    double param[N_PARAMS];
    for (int i = 0; i < N_PARAMS; i++)
        param[i] = params[i].standard;
    return propose(s, param, o, proposal);
}

double dr__analytic_most_workers(const dr__plant_model *m, const dr__observation *o)
{
    return most_workers(m, o, params[PER_CPU].standard);
}

void dr__analytic_shift_time(dr__analytic *s, int64_t by_ns)
{
    s->cover.raised_ns = dr__shift_ns(s->cover.raised_ns, by_ns);
}
