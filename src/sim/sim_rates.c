/* sim_rates.c: how fast everything goes between two events of a tick: shares of CPUs, workers, readers, the consumer.
 *
 * Workers are a fluid with an end: as long as there are samples for all, n workers make n / time of a sample.  Where
 * the window ends, fewer and fewer have one; how fast they become fewer depends on how samples vary: with constant
 * times all end together, with exponential ones the last takes a whole time more.
 */
#include "sim/sim_rates.h"

#include <math.h>

#include "base/compiler.h"
#include "exec/read_ahead.h"

static const double NICE = 0.015;     /* weight of a thread with nice 19 */
static const double NARROWEST = 0.15; /* of the end of the window, in samples for each worker */

enum { ROUNDS = 4 }; /* in which shares of CPUs are found: each halves what is missing, at least */

double dr__sim_share(double cpus, double n, double cpu, double block, double others)
{
    if (n * cpu / (cpu + block) + others <= cpus)
        return 1;
    const double b = n * cpu + others * cpu - cpus * block, c = cpus * cpu;
    return 2 * c / (b + sqrt(b * b + 4 * others * block * c));
}

/* Threads that have a sample, of n, where so many samples are left for them. */
static double in_service(double n, double left, double width)
{
    if (left <= DR__SIM_NO_SAMPLE || n <= 0)
        return 0;
    return left >= n * width ? n : DR_MIN(DR_MAX(left / width, 1), n);
}

/* A rate that two limits hold down; near both it is lower than either. */
static double both_limits(double a, double b)
{
    if (!isfinite(b))
        return a;
    const double a2 = a * a, b2 = b * b;
    return a * b / sqrt(sqrt(a2 * a2 + b2 * b2));
}

/* Threads of the consumer that want a CPU. */
static double consumer_threads(const dr_sim *s)
{
    if (s->step_left > DR__SIM_NO_TIME)
        return s->costs.step_s > 0 ? s->costs.step_cpu / s->costs.step_s * DR_MIN(s->f.train_threads, s->f.cpus) : 0;
    return s->pause_left > DR__SIM_NO_TIME ? DR_MIN(s->f.eval_cpus, s->f.cpus) : 0;
}

/* The part of what the consumer does, at full speed, that is on a CPU. */
static double cpu_part(const dr_sim *s)
{
    if (s->step_left > DR__SIM_NO_TIME)
        return s->costs.step_cpu / DR_MAX(s->costs.step_s, DR__SIM_NO_TIME);
    return s->pause_left > DR__SIM_NO_TIME && s->f.eval_cpus > 0;
}

/* Workers at slow samples: no more than there are samples, and with lanes no more than the lane's share. */
static double slow_workers(const dr_sim *s)
{
    const double backlog = s->slow_in - s->slow_out, workers = s->knob[DR_KNOB_WORKERS];
    if (backlog <= DR__SIM_NO_TIME)
        return 0;
    double most = workers;
    if (s->f.slow_factor >= s->knob[DR_KNOB_LANE_THRESHOLD]) {
        const double work = s->f.slow_share * s->f.slow_factor;
        const double share = s->knob[DR_KNOB_LANE_SHARE] > 0 ? s->knob[DR_KNOB_LANE_SHARE] : work / (work + 1);
        most = DR_MIN(DR_MAX(ceil(share * workers), 1), DR_MAX(workers - 1, 1));
    }
    return DR_MIN(ceil(backlog / s->costs.slow_cpu - 1e-6), most);
}

double dr__sim_room_to_read(const dr_sim *s, double workers)
{
    const double queue = s->read - s->done, most = DR__READ_AHEAD_PER_WORKER * s->knob[DR_KNOB_WORKERS] + workers;
    return DR_MIN(((double)s->delivered + s->window) * s->batch - s->read, most - queue);
}

/* Readers and workers in a row: where one waits for the other, it goes at the other's rate. */
static void count_split(const dr_sim *s, dr__sim_rates *r, double workers, double width)
{
    const double n = s->knob[DR_KNOB_READERS], each = s->costs.cpu * (1 + s->slowdown) + s->f.blocked;
    const double held = DR_MIN(s->rate * s->costs.read, n), starved = in_service(workers, s->read - s->done, width);
    r->readers = DR_MAX(in_service(n, dr__sim_room_to_read(s, workers), 1), held);
    if (n < s->knob[DR_KNOB_WORKERS] && s->read - s->done < workers) /* workers without a sample read one themselves */
        r->readers += DR_MAX(workers - n / DR_MAX(s->costs.read, DR__SIM_NO_TIME) * each, 0) * s->costs.read /
                      (s->costs.read + each);
    if (((double)s->delivered + s->window) * s->batch - s->read <= DR__SIM_NO_SAMPLE)
        r->readers = 0;
    r->read = both_limits(r->readers / DR_MAX(s->costs.read, DR__SIM_NO_TIME), s->costs.most_rate);
    r->workers = DR_MAX(starved, DR_MIN(r->read * each, workers));
}

static void count_threads(const dr_sim *s, dr__sim_rates *r)
{
    const double width = DR_MAX(DR_MIN(s->f.cpu_cv, 1), NARROWEST);
    r->slow = slow_workers(s);
    const double workers = s->knob[DR_KNOB_WORKERS] - r->slow;
    if (s->knob[DR_KNOB_READERS] > 0)
        count_split(s, r, workers, width);
    else
        r->workers = in_service(workers, ((double)s->delivered + s->window) * s->batch - s->done, width);
}

/* Threads of the consumer that want a CPU when each gets that share of one: of `threads` at full speed more, as their
 * part on CPUs takes longer. */
static double wanted(double threads, double part, double share)
{
    return part > 0 ? threads / (part + (1 - part) * share) : 0;
}

/* CPUs are shared by threads; workers of low priority get what the others leave. */
static void share_cpus(const dr_sim *s, dr__sim_rates *r, double block)
{
    const double cpus = s->f.cpus, always = dr__sim_tenants(s) + r->slow, part = cpu_part(s);
    const double threads = consumer_threads(s);
    const bool low = s->knob[DR_KNOB_PRIORITY] < 0;
    r->share = r->others = 1;
    double consumer = threads;
    for (int i = 0; i < ROUNDS; i++) {
        consumer = wanted(threads, part, r->others);
        const double others = consumer + always - (low ? r->slow : 0);
        if (low) {
            r->others = DR_MIN((1 - NICE) * cpus / DR_MAX(others, DR__SIM_NO_TIME), 1);
            r->share = dr__sim_share(DR_MAX(cpus - others, NICE * cpus), r->workers, r->each, block, r->slow);
        } else {
            r->share = r->others = dr__sim_share(cpus, r->workers, r->each, block, others);
        }
        if (r->others >= 1)
            break;
    }
    r->consumer_cpus = consumer * r->others;
}

static void set_pace(const dr_sim *s, dr__sim_rates *r)
{
    const double part = cpu_part(s);
    const bool held = dr__sim_is_throttled(s) && part > 0;
    r->pace = held ? 0 : 1 / (1 - part + part / r->others);
    r->consumer_cpus = held ? 0 : r->consumer_cpus;
}

/* Samples a second of workers that get that share of a CPU. */
static double work_rate(const dr_sim *s, dr__sim_rates *r, double block)
{
    const double ceiling = s->knob[DR_KNOB_CPU_CEILING], slow = r->slow * r->share;
    double work = r->workers / (r->each / r->share + block);
    if (s->knob[DR_KNOB_READERS] <= 0)
        work = both_limits(work, s->costs.most_rate);
    r->limited = ceiling > 0 && work * r->each + slow > ceiling;
    return r->limited ? DR_MAX(ceiling - slow, 0.02 * ceiling) / r->each : work;
}

/* Workers that storage or a ceiling holds up are blocked for longer, and want fewer CPUs. */
static void make_work(const dr_sim *s, dr__sim_rates *r)
{
    double block = s->f.blocked + (s->knob[DR_KNOB_READERS] > 0 ? 0 : s->costs.read);
    share_cpus(s, r, block);
    r->work = work_rate(s, r, block);
    const double seen = r->work > 0 ? r->workers / r->work - r->each / r->share : block;
    if (r->share >= 1 || seen <= 1.01 * block + DR__SIM_NO_TIME)
        return;
    share_cpus(s, r, seen);
    r->work = DR_MIN(work_rate(s, r, block), r->workers / (r->each / r->share + seen));
}

void dr__sim_make_rates(const dr_sim *s, dr__sim_rates *r)
{
    *r = (dr__sim_rates){ 0 };
    count_threads(s, r);
    const double factor = s->working < s->begun ? s->ring[s->working % DR__SIM_RING].factor : 1;
    r->each = s->costs.cpu * factor * (1 + s->slowdown);
    make_work(s, r);
    set_pace(s, r);
    if (dr__sim_is_throttled(s))
        r->slow = r->work = 0;
    r->own_cpus = r->work * r->each + r->slow * r->share + r->consumer_cpus;
}
