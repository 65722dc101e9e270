/* reward.c: terms of an observation, each in [0, 1], and their weighted sum. */
#include "sched/reward.h"

#include <math.h>

#include "base/compiler.h"
#include "sched/tables.h"

static const double LATENCY_REF = 1; /* seconds: as the sensor batch_latency */
static const double FRUGAL = 0.1;    /* of what samples are worth */

static double unit(double x)
{
    return isfinite(x) ? DR_MIN(DR_MAX(x, 0), 1) : 0;
}

/* What is delivered, out of what is asked for; no more can be asked for than all CPUs would make. */
static double throughput(const dr__observation *o)
{
    double most = o->cpu_each > 0 ? o->cpus / o->cpu_each : INFINITY;
    double asked = o->demand > 0 ? DR_MIN(o->demand, most) : most;
    return asked > 0 ? unit(o->rate / asked) : 0;
}

/* 1 - standard deviation of the use of what is there. */
static double balance(const dr__observation *o)
{
    static const int parts[] = { DR_SENSOR_CPU_TOTAL, DR_SENSOR_MEM_USED, DR_SENSOR_DISK_BUSY, DR_SENSOR_GPU_BUSY };
    double sum = 0, squares = 0;
    int n = 0;
    for (size_t i = 0; i < DR_COUNT(parts); i++)
        if (dr__senses(o, parts[i])) {
            double level = unit(o->level[parts[i]]);
            sum += level;
            squares += level * level;
            n++;
        }
    return n ? unit(1 - sqrt(DR_MAX(squares / n - sum / n * (sum / n), 0))) : 0;
}

/* Power of CPUs and GPUs together, out of what both may draw. */
static double energy(const dr__observation *o)
{
    static const int parts[] = { DR_SENSOR_POWER, DR_SENSOR_GPU_POWER };
    double now = 0, full = 0;
    for (size_t i = 0; i < DR_COUNT(parts); i++)
        if (dr__senses(o, parts[i]) && o->level[parts[i]] > 0) {
            now += o->sensor[parts[i]];
            full += o->sensor[parts[i]] / o->level[parts[i]];
        }
    return full > 0 ? unit(now / full) : 0;
}

void dr__terms_measure(const dr__observation *o, double turned, double term[DR_N_TERMS])
{
    term[DR_TERM_THROUGHPUT] = throughput(o);
    term[DR_TERM_LATENCY] = unit(o->latency / LATENCY_REF);
    term[DR_TERM_BALANCE] = balance(o);
    term[DR_TERM_ENERGY] = energy(o);
    term[DR_TERM_IDLE] = unit(o->wait);
    term[DR_TERM_HOST] = o->cpus > 0 ? unit(o->flow[DR_FLOW_CPU] / o->cpus) : 0;
    term[DR_TERM_CHANGE] = unit(turned);
}

bool dr__is_frugal(const dr_weights *weights)
{
    const double *w = weights->of, worth = w[DR_TERM_THROUGHPUT] + w[DR_TERM_IDLE];
    return w[DR_TERM_ENERGY] + w[DR_TERM_HOST] > FRUGAL * worth;
}

bool dr__waiting_counts(const dr_weights *weights)
{
    const double *w = weights->of;
    return w[DR_TERM_THROUGHPUT] + w[DR_TERM_IDLE] > 0 && !(w[DR_TERM_LATENCY] > 0) && !dr__is_frugal(weights);
}

double dr__reward_of(const double term[DR_N_TERMS], const double weight[DR_N_TERMS])
{
    double sum = 0;
    for (int i = 0; i < DR_N_TERMS; i++)
        sum += dr__term_sign(i) * weight[i] * term[i];
    return sum;
}

double dr_decision_reward(const dr_decision *d)
{
    return dr__reward_of(d->term, d->weight);
}
