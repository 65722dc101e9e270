/* costs.c: seconds of a sample on a CPU, waiting for one, and blocked, told apart.
 *
 * A thread without a CPU either waits for one (others run) or is blocked (in a read).  Work is decoding and augmenting:
 * where it takes longer than its CPU time and threads do outnumber CPUs, that is waiting for a CPU, and by the same
 * factor, the stretch, others are slowed down too.  What is beyond that is blocking, and so is a read.
 */
#include "sched/costs.h"

#include <math.h>

#include "base/compiler.h"

static const double NOISE = 0.1;               /* of the CPU time: lost without blocking */
static const double JUMP = 0.25;               /* what moved by more is no noise */
static const double FULL = 0.9;                /* of the quota, of the machine */
static const double PRESSURE = 0.05;           /* share of time: less of it and nobody waited for a CPU */
enum { MIN_BATCHES = 4, ENOUGH_BATCHES = 10 }; /* fewer are too few to call a difference a jump */

/* What was smoothed goes a part of the way to what is seen now, or all of it where that is another world. */
static void smooth(double *mean, double now, double part, double jump)
{
    bool anew = *mean <= 0 || fabs(now - *mean) > jump;
    *mean = anew ? now : *mean + part * (now - *mean);
}

/* The most by which threads can be slowed down, with all workers at work. */
static double most_stretch(const dr__costs *c, const dr__observation *o)
{
    double ours = o->knob[DR_KNOB_WORKERS] + o->knob[DR_KNOB_FETCHERS] + o->trainer_cpus;
    double machine = (ours + DR_MAX(o->foreign_cpus, c->foreign)) / o->machine_cpus, quota = ours / o->quota_cpus;
    bool idle = dr__senses(o, DR_SENSOR_PRESSURE_CPU) && o->sensor[DR_SENSOR_PRESSURE_CPU] < PRESSURE &&
                o->quota_cpus >= o->machine_cpus;
    return idle ? 1 : DR_MAX(DR_MAX(machine, quota), 1);
}

static double stretch_of(const dr__costs *c, const dr__observation *o)
{
    return o->cpu_each > 0 ? DR_MIN(DR_MAX(o->work_each / o->cpu_each, 1), most_stretch(c, o)) : 1;
}

/* While workers were busy, others got one part in `stretch` of what they wanted; else all.  A quota slows down us
 * alone: while CPUs are idle others get all. */
static double foreign_threads(const dr__observation *o, double stretch)
{
    double threads = DR_MAX(o->knob[DR_KNOB_WORKERS] + o->knob[DR_KNOB_FETCHERS], 1);
    double busy = DR_MIN((o->flow[DR_FLOW_READ] + o->flow[DR_FLOW_WORK]) / threads, 1);
    bool by_quota = o->quota_cpus < o->machine_cpus && o->sensor[DR_SENSOR_QUOTA_USED] > FULL * o->quota_cpus;
    if (by_quota && o->cpu_load < FULL)
        return o->foreign_cpus;
    return o->foreign_cpus / (busy / stretch + 1 - busy);
}

/* A window with few batches says little about rates: it may hold one more or less by chance. */
void dr__costs_learn(dr__costs *c, const dr__observation *o)
{
    double stretch = stretch_of(c, o), cpu = o->cpu_each, noise = NOISE * cpu;
    double part = DR_MIN(DR_MAX(o->batches / ENOUGH_BATCHES, 0.05), 0.5);
    double jump = o->batches >= MIN_BATCHES || o->sudden ? JUMP + 1 / DR_MAX(o->batches, 1) : INFINITY;
    if (cpu > 0) {
        double cpu_of_reads = DR_MAX(cpu - o->work_each, 0);
        smooth(&c->cpu, cpu, 0.5, JUMP * c->cpu);
        smooth(&c->read, o->read_each, 0.5, JUMP * c->read);
        smooth(&c->block_read, DR_MAX(o->read_each - stretch * cpu_of_reads - noise, 0), 0.5, JUMP * cpu);
        smooth(&c->block_work, DR_MAX(o->work_each - stretch * cpu - noise, 0), 0.5, JUMP * cpu);
    }
    if (o->rate > 0)
        smooth(&c->trainer, o->trainer_cpus / o->rate, part, jump * c->cpu);
    if (o->demand > 0)
        smooth(&c->demand, o->demand, part, jump * c->demand);
    if (o->latency > 0)
        smooth(&c->latency, o->latency, part, jump * c->latency);
    smooth(&c->foreign, foreign_threads(o, stretch), 0.5, o->machine_cpus / 8);
}
