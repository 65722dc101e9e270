/* plant_model.c: capacity and reward of a number of workers, predicted. */
#include "sched/plant_model.h"

#include <math.h>

#include "base/compiler.h"
#include "sched/reward.h"

static const double PER_THREAD =
    0.002;                           /* of the reward: what as many idle threads as CPUs cost in memory and wakeups */
static const double CROWDING = 0.02; /* for as many threads that want a CPU as there are, beyond those */
static const double SHORT = 0.3;     /* of what samples are worth: for a capacity that is short of the margin */

enum { ROUNDS = 8 };

/* What a thread that wants a CPU gets of it: the share s at which all is used,
 *     n (c + k) s / (c + b s) + F s = N
 * for n workers with c and b seconds a sample on a CPU and blocked, a consumer with k, F threads of others, N CPUs. */
static double share_of(const dr__plant_model *m, double workers)
{
    double c = m->cpu, b = m->block, cpus = m->machine_cpus;
    double square = m->foreign * b, line = workers * (c + m->consumer) + m->foreign * c - cpus * b;
    double root = sqrt(line * line + 4 * square * cpus * c);
    return DR_MIN(2 * cpus * c / DR_MAX(line + root, 1e-12), 1); /* the form that stays exact for small squares */
}

/* Workers that have a CPU or wait for one, at a time: the others are blocked. */
static double wanting(const dr__plant_model *m, double workers)
{
    return workers * m->cpu / (m->cpu + m->block * share_of(m, workers));
}

double dr__plant_cpus(const dr__plant_model *m, double workers)
{
    double share = share_of(m, workers), by_quota = m->quota_cpus / (1 + m->consumer / m->cpu);
    return DR_MIN(workers * m->cpu * share / (m->cpu + m->block * share), DR_MIN(by_quota, m->cpus));
}

double dr__plant_capacity(const dr__plant_model *m, double workers)
{
    return dr__plant_cpus(m, workers) / m->cpu;
}

/* Threads that want a CPU for each there is, with so many of ours. */
static double crowd_of(const dr__plant_model *m, double ours)
{
    return DR_MAX(DR_MAX((ours + m->foreign) / m->machine_cpus, ours / m->quota_cpus), 1);
}

/* A sample takes the consumer its time with a CPU, and what it waits for CPUs while workers run; these run as long as
 * its samples take them.  That is solved by going round a few times. */
double dr__plant_demand(const dr__plant_model *m, double workers)
{
    double used = DR_MIN(m->consumer * m->demand, m->machine_cpus); /* CPUs, on average */
    double threads = DR_MIN(DR_MAX(DR_MAX(m->threads, used), 1), DR_MAX(m->machine_cpus, 1)),
           own = used / threads / m->demand;
    double beside = crowd_of(m, wanting(m, workers) + threads), alone = crowd_of(m, threads), rate = m->demand;
    for (int i = 0; i < ROUNDS; i++) {
        double busy = DR_MIN(rate * (m->cpu * beside + m->block) / workers, 1);
        double slower = busy * (beside - alone); /* without workers `alone` would remain */
        rate = (rate + 1 / (1 / m->demand + own * slower)) / 2;
    }
    return rate;
}

/* 1 - standard deviation of the use of what is there, as it is measured. */
static double balance(const dr__plant_model *m, double cpu_level)
{
    double sum = cpu_level, squares = cpu_level * cpu_level;
    int n = 1;
    for (size_t i = 0; i < DR_COUNT(m->levels); i++)
        if (m->levels[i] >= 0) {
            sum += m->levels[i];
            squares += m->levels[i] * m->levels[i];
            n++;
        }
    return 1 - sqrt(DR_MAX(squares / n - sum / n * (sum / n), 0));
}

/* A consumer that workers slow down takes less, so that too few of them would look like enough: what is short is short
 * of what it would take alone.  Where power and CPU time are dear, that would buy them for samples that nobody takes.
 */
static double lacking(const dr__plant_model *m, const dr_weights *weights, double capacity, double demand,
                      double margin)
{
    return DR_MAX(1 - capacity / (margin * (dr__is_frugal(weights) ? demand : m->demand)), 0);
}

double dr__plant_reward(const dr__plant_model *m, const dr_weights *weights, double workers, double margin)
{
    double capacity = dr__plant_capacity(m, workers), demand = dr__plant_demand(m, workers);
    double rate = DR_MIN(capacity, demand), less = lacking(m, weights, capacity, demand, margin);
    double load = DR_MIN((rate * (m->cpu + m->consumer) + m->foreign) / m->machine_cpus, 1);
    double term[DR_N_TERMS] = {
        [DR_TERM_THROUGHPUT] = rate / DR_MIN(m->demand, m->cpus / m->cpu),
        [DR_TERM_LATENCY] = DR_MIN(m->batch_samples / DR_MAX(capacity, 1e-9), 1),
        [DR_TERM_BALANCE] = balance(m, load),
        [DR_TERM_ENERGY] = !m->has_power ? 0 : DR__REST_POWER + DR__LOAD_POWER * load,
        [DR_TERM_IDLE] = 1 - rate / m->demand,
        [DR_TERM_HOST] = rate * m->cpu / m->cpus,
    };
    double crowd = DR_MAX(wanting(m, workers) - m->cpus, 0) / m->cpus;
    double worth = weights->of[DR_TERM_THROUGHPUT] + weights->of[DR_TERM_IDLE];
    return dr__reward_of(term, weights->of) - SHORT * worth * less - PER_THREAD * workers / m->cpus - CROWDING * crowd;
}
