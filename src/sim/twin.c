/* twin.c: one tick of the executor's twin.
 *
 * A tick is divided where something happens: a batch is complete, a step ends, the quota is used up.  Between these,
 * rates are constant (sim_rates.c).
 *
 * Slow samples are work apart, done in the order of their batches by workers that are then not at ordinary ones: by all
 * of them, or with lanes by no more than the slow lane's share.  A batch is complete when both are done.
 */
#include "sim/sim_rates.h"

#include <math.h>

#include "base/compiler.h"

static const double LEAST_STEP = 2e-6;   /* seconds of a substep, so that a tick ends */
static const double MEMORY_FROM = 0.6;   /* load of the memory's bandwidth at which samples begin to take longer */
static const double MEMORY_SLOWER = 0.3; /* at full load */

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
    while (s->working < s->begun && s->done >= (double)(s->working + 1) * s->batch - DR__SIM_NO_SAMPLE)
        s->working++;
    for (uint64_t i = s->delivered; i < s->working; i++) {
        dr__sim_batch *b = batch_of(s, i);
        if (b->ready_s < INFINITY || s->slow_out < b->slow_mark - DR__SIM_NO_TIME)
            continue;
        b->ready_s = s->time + s->f.lag;
        s->flow[DR_FLOW_LATENCY] += b->ready_s - b->begun_s;
    }
}

/* --- the consumer --- */

static bool takes_step(const dr_sim *s)
{
    return s->step_left > DR__SIM_NO_TIME || s->pause_left > DR__SIM_NO_TIME;
}

static void take_batch(dr_sim *s)
{
    const double crowded = s->f.jitter * DR_MIN(DR_MAX(s->peak / s->f.cpus - 1, 0), 2);
    s->mean_step += (s->time - s->delivered_s - s->mean_step) / (double)DR_MIN(s->delivered + 1, 50);
    s->peak = 0;
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
    return s->delivered < s->working && batch_of(s, s->delivered)->ready_s <= s->time + DR__SIM_NO_TIME;
}

/* --- time --- */

/* For how long these rates hold. */
static double until_change(dr_sim *s, const dr__sim_rates *r, double left)
{
    const double limit = (double)s->delivered * s->batch + s->window * s->batch;
    double dt = left;
    if (takes_step(s))
        dt = r->pace > 0 ? DR_MIN(dt, (s->step_left > DR__SIM_NO_TIME ? s->step_left : s->pause_left) / r->pace) : dt;
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
    if (s->costs.quota < INFINITY && r->own_cpus > 0 && !dr__sim_is_throttled(s))
        dt = DR_MIN(dt, s->budget / r->own_cpus);
    return DR_MIN(DR_MAX(dt, LEAST_STEP), left);
}

static void pass_workers(dr_sim *s, const dr__sim_rates *r, double dt)
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
    else if (!dr__sim_is_throttled(s))
        s->flow[DR_FLOW_READ] += r->limited ? made * s->costs.read : DR_MAX(r->workers * dt - (work - r->slow * dt), 0);
    s->flow[DR_FLOW_ACTIVE] = r->workers + r->slow;
}

static void pass_reads(dr_sim *s, const dr__sim_rates *r, double dt)
{
    const bool split = s->knob[DR_KNOB_READERS] > 0;
    double n = r->work * dt;
    if (split) {
        const double workers = s->knob[DR_KNOB_WORKERS] - r->slow, room = dr__sim_room_to_read(s, workers) + n;
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

static void pass_consumer(dr_sim *s, const dr__sim_rates *r, double dt)
{
    if (s->step_left > DR__SIM_NO_TIME) {
        s->step_left -= r->pace * dt;
        s->trained += r->pace * dt / s->step_all * s->batch;
        s->accel_s += r->pace * dt * (1 - s->costs.step_cpu / DR_MAX(s->costs.step_s, DR__SIM_NO_TIME));
        s->flow[DR_FLOW_STEP] += dt;
    } else if (s->pause_left > DR__SIM_NO_TIME) {
        s->pause_left -= r->pace * dt;
        s->flow[DR_FLOW_STEP] += dt;
    } else {
        s->flow[DR_FLOW_WAIT] += dt;
    }
    s->used_consumer += r->consumer_cpus * dt;
}

static void pass(dr_sim *s, const dr__sim_rates *r, double dt)
{
    const double tenants = dr__sim_tenants(s);
    pass_consumer(s, r, dt);
    pass_reads(s, r, dt);
    const double before = s->done;
    pass_workers(s, r, dt);
    s->used_tenants += DR_MIN(tenants * r->others, DR_MAX(s->f.cpus - r->own_cpus, 0)) * dt;
    if (dr__sim_is_throttled(s)) {
        s->throttled += dt;
        s->all.throttled += dt;
    }
    s->budget -= r->own_cpus * dt;
    s->time += dt;
    s->rate = (s->done - before) / dt;
    const double own = r->limited ? r->workers + r->slow : (s->rate * r->each + r->slow * r->share) / r->share;
    s->want = own + r->consumer_cpus / r->others + tenants; /* under a ceiling all workers run, and then all pause */
    s->peak = DR_MAX(s->peak, s->want);
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
    while (end - s->time > DR__SIM_NO_TIME) {
        dr__sim_rates r;
        dr__sim_make_rates(s, &r);
        begin_batches(s, s->knob[DR_KNOB_READERS] > 0 ? s->read + r.readers : s->done + r.workers);
        pass(s, &r, until_change(s, &r, end - s->time));
        complete(s);
        while (!takes_step(s) && head_ready(s))
            take_batch(s);
    }
    s->flow[DR_FLOW_CONSUMERS] = !takes_step(s);
}
