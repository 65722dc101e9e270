/* costs.c: seconds of a sample on a CPU and blocked, told apart; what others want.
 *
 * A thread without a CPU either waits for one, because others run, or is blocked: in a read, a sleep, a lock.  The
 * kernel counts the first where the plant tells it (delay), else the stretch of an observation says how much of it
 * there may be; by the same factor others are slowed down too.
 */
#include "sched/costs.h"

#include <math.h>

#include "base/compiler.h"

static const double NOISE = 0.1;               /* of the CPU time: lost without blocking */
static const double JUMP = 0.25;               /* what moved by more is no noise */
static const double FULL = 0.9;                /* of the quota, of the machine */
enum { MIN_BATCHES = 4, ENOUGH_BATCHES = 10 }; /* fewer are too few to call a difference a jump */

/* What was smoothed goes a part of the way to what is seen now, or all of it where that is another world. */
static void smooth(double *mean, double now, double part, double jump)
{
    bool anew = *mean <= 0 || fabs(now - *mean) > jump;
    *mean = anew ? now : *mean + part * (now - *mean);
    if (*mean < 1e-9)
        *mean = 0; /* not ever smaller numbers */
}

/* While workers wanted a CPU, others got one part in `stretch` of what they wanted; else all.  A quota slows down us
 * alone: while CPUs are idle others get all. */
static double foreign_threads(const dr__observation *o)
{
    bool by_quota = o->quota_cpus < o->machine_cpus && o->sensor[DR_SENSOR_QUOTA_USED] > FULL * o->quota_cpus;
    if (by_quota && o->cpu_load < FULL)
        return o->foreign_cpus;
    return o->foreign_cpus / (o->wanting / o->stretch + 1 - o->wanting);
}

/* A window with few batches says little about rates: it may hold one more or less by chance. */
void dr__costs_learn(dr__costs *c, const dr__observation *o)
{
    double stretch = o->stretch, cpu = o->cpu_each, noise = NOISE * cpu;
    double part = DR_MIN(DR_MAX(o->batches / ENOUGH_BATCHES, 0.05), 0.5);
    double jump = o->batches >= MIN_BATCHES || o->sudden ? JUMP + 1 / DR_MAX(o->batches, 1) : INFINITY;
    if (cpu > 0) {
        double cpu_of_reads = DR_MAX(cpu - o->work_each, 0);
        smooth(&c->cpu, cpu, 0.5, JUMP * c->cpu);
        smooth(&c->read, o->read_each, 0.5, JUMP * c->read);
        smooth(&c->block_read, DR_MAX(o->read_each - stretch * cpu_of_reads - noise, 0), 0.5, JUMP * cpu);
        double on_cpu = o->use.tells_delay ? cpu + o->delay_each : stretch * cpu;
        smooth(&c->block_work, DR_MAX(o->work_each - on_cpu - noise, 0), 0.5, JUMP * cpu);
    }
    if (o->rate > 0)
        smooth(&c->consumer, o->consumer_cpus / o->rate, part, jump * c->cpu);
    if (o->demand > 0)
        smooth(&c->demand, o->demand, part, jump * c->demand);
    if (o->latency > 0)
        smooth(&c->latency, o->latency, part, jump * c->latency);
    smooth(&c->foreign, foreign_threads(o), 0.5, o->machine_cpus / 8);
}
