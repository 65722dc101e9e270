/* twin.c: one tick of the executor's twin.
 *
 * A tick is divided where something happens: a batch is complete, a step ends, the quota is used up.  Between these,
 * rates are constant.
 *
 * Workers are a fluid with an end: as long as there are samples for all, n workers make n / time of a sample.  Where
 * the window ends, fewer and fewer have one; how fast they become fewer depends on how samples vary: with constant
 * times all end together, with exponential ones the last takes a whole time more.
 *
 * Slow samples are work apart, done in the order of their batches by workers that are then not at ordinary ones: by all
 * of them, or with lanes by no more than the slow lane's share.  A batch is complete when both are done.
 */
#include "sim/twin.h"

#include <math.h>

#include "base/compiler.h"
#include "exec/read_ahead.h"

static const double NO_TIME = 1e-9;      /* seconds */
static const double NO_SAMPLE = 1e-7;    /* samples: rounding of positions */
static const double LEAST_STEP = 2e-6;   /* seconds of a substep, so that a tick ends */
static const double NICE = 0.015;        /* weight of a thread with nice 19 */
static const double NARROWEST = 0.15;    /* of the end of the window, in samples for each worker */
static const double MEMORY_FROM = 0.6;   /* load of the memory's bandwidth at which samples begin to take longer */
static const double MEMORY_SLOWER = 0.3; /* at full load */

enum { ROUNDS = 4 }; /* in which shares of CPUs are found: each halves what is missing, at least */

typedef struct rates {
    double share;                   /* of a CPU, for workers that want one */
    double others;                  /* the same for the consumer */
    double workers, readers;        /* threads at an ordinary sample, at a read */
    double slow;                    /* workers at slow samples */
    double each;                    /* CPU seconds of an ordinary sample of the present batch */
    double work, read;              /* samples a second */
    double pace;                    /* of the consumer's step: seconds at full speed, a second */
    double own_cpus, consumer_cpus; /* used: by workers and consumer; by the consumer */
    bool limited;                   /* by the CPU ceiling */
} rates;

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
    if (left <= NO_SAMPLE || n <= 0)
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

/* --- batches --- */

static dr__sim_batch *batch_of(dr_sim *s, uint64_t number)
{
    return &s->ring[number % DR__SIM_RING];
}

/* How many of a batch's samples are slow: binomial, by its normal limit where that is good. */
static double draw_slow(dr_sim *s)
{
    const double mean = s->batch * s->f.slow_share;
    if (mean > 20)
        return DR_MAX(round(mean + sqrt(mean * (1 - s->f.slow_share)) * dr__sim_normal(&s->rng)), 0);
    int n = -1;
    for (double left = 1, least = exp(-mean); left >= least; n++)
        left *= 1 - dr__sim_unit(&s->rng);
    return n;
}

static void begin_batch(dr_sim *s)
{
    dr__sim_batch *b = batch_of(s, s->begun++);
    const double slow = s->f.slow_share > 0 ? draw_slow(s) : 0;
    const double ordinary = DR_MAX(1 - slow / s->batch, 0); /* the fluid makes all of the batch at that cost */
    s->slow_in += slow * s->costs.slow_cpu;
    *b = (dr__sim_batch){ .factor = ordinary * dr__sim_lognormal(&s->rng, s->f.cpu_cv / sqrt(s->batch)),
                          .begun_s = s->time,
                          .ready_s = INFINITY,
                          .slow_mark = slow > 0 ? s->slow_in : 0 };
    b->factor = DR_MAX(b->factor, 1e-3);
}

static void begin_batches(dr_sim *s, double claimed)
{
    const uint64_t end = s->delivered + (uint64_t)s->window;
    while (s->begun < end && (double)s->begun * s->batch < claimed)
        begin_batch(s);
}

/* Ordinary samples of all batches before `working` are done: these are ready once their slow ones are, too. */
static void complete(dr_sim *s)
{
    while (s->working < s->begun && s->done >= (double)(s->working + 1) * s->batch - NO_SAMPLE)
        s->working++;
    for (uint64_t i = s->delivered; i < s->working; i++) {
        dr__sim_batch *b = batch_of(s, i);
        if (b->ready_s < INFINITY || s->slow_out < b->slow_mark - NO_TIME)
            continue;
        b->ready_s = s->time + s->f.lag;
        s->flow[DR_FLOW_LATENCY] += b->ready_s - b->begun_s;
    }
}

/* --- the consumer --- */

static bool takes_step(const dr_sim *s)
{
    return s->step_left > NO_TIME || s->pause_left > NO_TIME;
}

static void take_batch(dr_sim *s)
{
    const double crowded = s->want > s->f.cpus ? s->f.jitter * (s->want / s->f.cpus) : 0;
    s->mean_step += (s->time - s->delivered_s - s->mean_step) / (double)DR_MIN(s->delivered + 1, 50);
    s->delivered++;
    s->delivered_s = s->time;
    s->flow[DR_FLOW_BATCHES] += 1;
    s->flow[DR_FLOW_SAMPLES] += s->batch;
    s->step_left = s->step_all = s->costs.step_s * dr__sim_lognormal(&s->rng, s->f.step_cv) + crowded;
    if (s->f.eval_every >= 1 && fmod((double)s->delivered, floor(s->f.eval_every)) == 0)
        s->pause_left = s->f.eval_for;
}

static bool head_ready(dr_sim *s)
{
    return s->delivered < s->working && batch_of(s, s->delivered)->ready_s <= s->time + NO_TIME;
}

/* Threads of the consumer that want a CPU. */
static double consumer_threads(const dr_sim *s)
{
    if (s->step_left > NO_TIME)
        return s->costs.step_s > 0 ? s->costs.step_cpu / s->costs.step_s * DR_MIN(s->f.train_threads, s->f.cpus) : 0;
    return s->pause_left > NO_TIME ? DR_MIN(s->f.eval_cpus, s->f.cpus) : 0;
}

/* The part of what the consumer does, at full speed, that is on a CPU. */
static double cpu_part(const dr_sim *s)
{
    if (s->step_left > NO_TIME)
        return s->costs.step_cpu / DR_MAX(s->costs.step_s, NO_TIME);
    return s->pause_left > NO_TIME && s->f.eval_cpus > 0;
}

/* --- rates --- */

static bool is_throttled(const dr_sim *s)
{
    return s->budget <= NO_TIME;
}

/* Workers at slow samples: no more than there are samples, and with lanes no more than the lane's share. */
static double slow_workers(const dr_sim *s)
{
    const double backlog = s->slow_in - s->slow_out, workers = s->knob[DR_KNOB_WORKERS];
    if (backlog <= NO_TIME)
        return 0;
    double most = workers;
    if (s->f.slow_factor >= s->knob[DR_KNOB_LANE_THRESHOLD]) {
        const double work = s->f.slow_share * s->f.slow_factor;
        const double share = s->knob[DR_KNOB_LANE_SHARE] > 0 ? s->knob[DR_KNOB_LANE_SHARE] : work / (work + 1);
        most = DR_MIN(DR_MAX(ceil(share * workers), 1), DR_MAX(workers - 1, 1));
    }
    return DR_MIN(ceil(backlog / s->costs.slow_cpu - 1e-6), most);
}

/* Samples that may be read before the window or the queue of samples read ahead is full. */
static double room_to_read(const dr_sim *s, double workers)
{
    const double queue = s->read - s->done, most = DR__READ_AHEAD_PER_WORKER * s->knob[DR_KNOB_WORKERS] + workers;
    return DR_MIN(((double)s->delivered + s->window) * s->batch - s->read, most - queue);
}

/* Readers and workers in a row: where one waits for the other, it goes at the other's rate. */
static void count_split(const dr_sim *s, rates *r, double workers, double width)
{
    const double n = s->knob[DR_KNOB_READERS], each = s->costs.cpu * (1 + s->slowdown) + s->f.blocked;
    const double held = DR_MIN(s->rate * s->costs.read, n), starved = in_service(workers, s->read - s->done, width);
    r->readers = DR_MAX(in_service(n, room_to_read(s, workers), 1), held);
    if (((double)s->delivered + s->window) * s->batch - s->read <= NO_SAMPLE)
        r->readers = 0;
    r->read = both_limits(r->readers / DR_MAX(s->costs.read, NO_TIME), s->costs.most_rate);
    r->workers = DR_MAX(starved, DR_MIN(r->read * each, workers));
}

static void count_threads(const dr_sim *s, rates *r)
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
static void share_cpus(const dr_sim *s, rates *r, double block)
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
            r->others = DR_MIN((1 - NICE) * cpus / DR_MAX(others, NO_TIME), 1);
            r->share = dr__sim_share(DR_MAX(cpus - others, NICE * cpus), r->workers, r->each, block, r->slow);
        } else {
            r->share = r->others = dr__sim_share(cpus, r->workers, r->each, block, others);
        }
        if (r->others >= 1)
            break;
    }
    r->consumer_cpus = consumer * r->others;
}

static void set_pace(const dr_sim *s, rates *r)
{
    const double part = cpu_part(s);
    const bool held = is_throttled(s) && part > 0;
    r->pace = held ? 0 : 1 / (1 - part + part / r->others);
    r->consumer_cpus = held ? 0 : r->consumer_cpus;
}

/* Samples a second of workers that get that share of a CPU. */
static double work_rate(const dr_sim *s, rates *r, double block)
{
    const double ceiling = s->knob[DR_KNOB_CPU_CEILING], slow = r->slow * r->share;
    double work = r->workers / (r->each / r->share + block);
    if (s->knob[DR_KNOB_READERS] <= 0)
        work = both_limits(work, s->costs.most_rate);
    r->limited = ceiling > 0 && work * r->each + slow > ceiling;
    return r->limited ? DR_MAX(ceiling - slow, 0.02 * ceiling) / r->each : work;
}

/* Workers that storage or a ceiling holds up are blocked for longer, and want fewer CPUs. */
static void make_work(const dr_sim *s, rates *r)
{
    double block = s->f.blocked + (s->knob[DR_KNOB_READERS] > 0 ? 0 : s->costs.read);
    share_cpus(s, r, block);
    r->work = work_rate(s, r, block);
    const double seen = r->work > 0 ? r->workers / r->work - r->each / r->share : block;
    if (r->share >= 1 || seen <= 1.01 * block + NO_TIME)
        return;
    share_cpus(s, r, seen);
    r->work = DR_MIN(work_rate(s, r, block), r->workers / (r->each / r->share + seen));
}

static void make_rates(const dr_sim *s, rates *r)
{
    *r = (rates){ 0 };
    count_threads(s, r);
    const double factor = s->working < s->begun ? s->ring[s->working % DR__SIM_RING].factor : 1;
    r->each = s->costs.cpu * factor * (1 + s->slowdown);
    make_work(s, r);
    set_pace(s, r);
    if (is_throttled(s))
        r->slow = r->work = 0;
    r->own_cpus = r->work * r->each + r->slow * r->share + r->consumer_cpus;
}

/* --- time --- */

/* For how long these rates hold. */
static double until_change(dr_sim *s, const rates *r, double left)
{
    const double limit = (double)s->delivered * s->batch + s->window * s->batch;
    double dt = left;
    if (takes_step(s))
        dt = r->pace > 0 ? DR_MIN(dt, (s->step_left > NO_TIME ? s->step_left : s->pause_left) / r->pace) : dt;
    else if (s->delivered < s->working && batch_of(s, s->delivered)->ready_s < INFINITY)
        dt = DR_MIN(dt, batch_of(s, s->delivered)->ready_s - s->time);
    if (r->work > 0) {
        dt = DR_MIN(dt, ((double)(s->working + 1) * s->batch - s->done) / r->work);
        if (s->knob[DR_KNOB_READERS] <= 0 && r->workers > 1 && r->workers < s->knob[DR_KNOB_WORKERS] - r->slow)
            dt = DR_MIN(dt, DR_MAX((limit - s->done) / r->work / 3, 1e-4));
    }
    if (r->read > 0)
        dt = DR_MIN(dt, DR_MAX((limit - s->read) / r->read, 2e-4));
    if (r->slow > 0) {
        const double pace = r->slow * r->share / (1 + s->slowdown);
        dt = DR_MIN(dt, DR_MAX(DR_MIN(s->slow_in - s->slow_out, s->costs.slow_cpu) / pace, 1e-4));
    }
    if (s->costs.quota < INFINITY && r->own_cpus > 0 && !is_throttled(s))
        dt = DR_MIN(dt, s->budget / r->own_cpus);
    return DR_MIN(DR_MAX(dt, LEAST_STEP), left);
}

static void pass_workers(dr_sim *s, const rates *r, double dt)
{
    const double ahead = s->knob[DR_KNOB_READERS] > 0 ? s->read : INFINITY; /* pass_reads was before */
    const double made = DR_MIN(r->work * dt, ahead - s->done), slow = r->slow * r->share / (1 + s->slowdown) * dt;
    const double on_cpu = made * r->each, work = on_cpu / r->share + made * s->f.blocked + r->slow * dt;
    s->done += made;
    s->slow_out = DR_MIN(s->slow_out + slow, s->slow_in);
    s->flow[DR_FLOW_WORKED] += made;
    s->flow[DR_FLOW_WORK] += work;
    s->flow[DR_FLOW_SLOW_WORK] += r->slow * dt;
    s->flow[DR_FLOW_CPU] += on_cpu + r->slow * r->share * dt;
    s->flow[DR_FLOW_CACHE_HITS] += made * s->costs.hits;
    if (s->f.cache > 0)
        s->flow[DR_FLOW_CACHE_MISSES] += made * (1 - s->costs.hits);
    s->used_workers += on_cpu + r->slow * r->share * dt;
    if (s->knob[DR_KNOB_READERS] > 0)
        s->flow[DR_FLOW_READ] += r->readers * dt;
    else if (!is_throttled(s))
        s->flow[DR_FLOW_READ] += r->limited ? made * s->costs.read : DR_MAX(r->workers * dt - (work - r->slow * dt), 0);
    s->flow[DR_FLOW_ACTIVE] = r->workers + r->slow;
}

static void pass_reads(dr_sim *s, const rates *r, double dt)
{
    const bool split = s->knob[DR_KNOB_READERS] > 0;
    double n = r->work * dt;
    if (split) {
        const double workers = s->knob[DR_KNOB_WORKERS] - r->slow, room = room_to_read(s, workers) + n;
        n = DR_MAX(DR_MIN(DR_MIN(r->read * dt, room), ((double)s->delivered + s->window) * s->batch - s->read), 0);
    }
    s->read = split ? s->read + n : s->done + n;
    s->flow[DR_FLOW_BYTES_READ] += n * s->f.sample_bytes * (1 - s->costs.hits);
    s->read_bytes += n * s->costs.disk_bytes;
    s->link_bytes += n * s->costs.link_bytes;
    s->busy_reads += n * s->costs.read * (s->costs.disk_bytes > 0);
    s->pages += n * s->costs.disk_bytes;
    s->kept += n * (1 - s->costs.hits) * s->f.prefix_bytes * (s->f.cache > 0);
}

static void pass_consumer(dr_sim *s, const rates *r, double dt)
{
    if (s->step_left > NO_TIME) {
        s->step_left -= r->pace * dt;
        s->trained += r->pace * dt / s->step_all * s->batch;
        s->accel_s += r->pace * dt * (1 - s->costs.step_cpu / DR_MAX(s->costs.step_s, NO_TIME));
        s->flow[DR_FLOW_STEP] += dt;
    } else if (s->pause_left > NO_TIME) {
        s->pause_left -= r->pace * dt;
        s->flow[DR_FLOW_STEP] += dt;
    } else {
        s->flow[DR_FLOW_WAIT] += dt;
    }
    s->used_consumer += r->consumer_cpus * dt;
}

static void pass(dr_sim *s, const rates *r, double dt)
{
    const double tenants = dr__sim_tenants(s);
    pass_consumer(s, r, dt);
    pass_reads(s, r, dt);
    const double before = s->done;
    pass_workers(s, r, dt);
    s->used_tenants += DR_MIN(tenants * r->others, DR_MAX(s->f.cpus - r->own_cpus, 0)) * dt;
    if (is_throttled(s)) {
        s->throttled += dt;
        s->all.throttled += dt;
    }
    s->budget -= r->own_cpus * dt;
    s->time += dt;
    s->rate = (s->done - before) / dt;
    s->want = (s->rate * r->each + r->slow * r->share) / r->share + r->consumer_cpus / r->others + tenants;
}

/* What crowds, switches and memory traffic add to a sample's CPU time; it changes little within a tick. */
static void measure_crowd(dr_sim *s)
{
    const double cpus = s->f.cpus, busy = DR_MIN(s->want, cpus);
    const double crowd = cpus > 1 ? s->f.crowd * DR_MAX(busy - 1, 0) / (cpus - 1) : 0;
    const double traffic = s->rate * s->f.moved_bytes / s->f.memory_bw;
    const double memory = DR_MIN(DR_MAX((traffic - MEMORY_FROM) / (1 - MEMORY_FROM), 0), 1);
    const double queue = DR_MIN(DR_MAX(s->want / cpus - 1, 0), 8);
    const double now = crowd + s->f.switch_cost * queue + MEMORY_SLOWER * memory;
    s->slowdown += 0.5 * (now - s->slowdown);
}

void dr__sim_tick(dr_sim *s)
{
    const double end = (double)++s->ticks * DR__SIM_TICK_S;
    measure_crowd(s);
    while (end - s->time > NO_TIME) {
        rates r;
        make_rates(s, &r);
        begin_batches(s, s->knob[DR_KNOB_READERS] > 0 ? s->read + r.readers : s->done + r.workers);
        pass(s, &r, until_change(s, &r, end - s->time));
        complete(s);
        while (!takes_step(s) && head_ready(s))
            take_batch(s);
    }
    s->flow[DR_FLOW_CONSUMERS] = !takes_step(s);
}
