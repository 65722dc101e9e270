/* plant_model.c: capacity and reward of a number of workers, predicted. */
#include "sched/plant_model.h"

#include <math.h>

#include "base/compiler.h"
#include "sched/reward.h"

static const double PER_THREAD = 0.001; /* of the reward: what an idle thread costs in memory and wakeups */
static const double CROWDING = 0.01;    /* for each thread that wants a CPU beyond those there are */
static const double REST_POWER = 0.2;   /* of a busy machine's, as in the monitor's model */

/* Workers that want a CPU at a time. */
static double wanting(const dr__plant_model *m, double workers)
{
    return workers * m->cpu / (m->cpu + m->block);
}

double dr__plant_cpus(const dr__plant_model *m, double workers)
{
    double want = wanting(m, workers), with_trainer = 1 + m->trainer / m->cpu;
    double share = DR_MIN(m->machine_cpus / (want * with_trainer + m->foreign), 1);
    double by_quota = m->quota_cpus / with_trainer;
    return DR_MIN(want * share, DR_MIN(by_quota, m->cpus));
}

double dr__plant_capacity(const dr__plant_model *m, double workers)
{
    return dr__plant_cpus(m, workers) / m->cpu;
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

double dr__plant_reward(const dr__plant_model *m, const dr_weights *weights, double workers, double margin)
{
    double capacity = dr__plant_capacity(m, workers), rate = DR_MIN(capacity / margin, m->demand);
    double load = DR_MIN((rate * (m->cpu + m->trainer) + m->foreign) / m->machine_cpus, 1);
    double term[DR_N_TERMS] = {
        [DR_TERM_THROUGHPUT] = rate / DR_MIN(m->demand, m->cpus / m->cpu),
        [DR_TERM_LATENCY] = DR_MIN(m->batch_samples / DR_MAX(capacity, 1e-9), 1),
        [DR_TERM_BALANCE] = balance(m, load),
        [DR_TERM_ENERGY] = REST_POWER + (1 - REST_POWER) * load,
        [DR_TERM_IDLE] = 1 - rate / m->demand,
        [DR_TERM_HOST] = rate * m->cpu / m->cpus,
    };
    double crowd = DR_MAX(wanting(m, workers) - m->cpus, 0);
    return dr__reward_of(term, weights->of) - PER_THREAD * workers - CROWDING * crowd;
}
