/* flow.c: a loader's counters and queues in the form that controllers and monitors read.
 *
 * Wait and step are wall-clock times, whatever the number of consumers: together they are the time since the first call
 * of a consumer.  The interval that is still running counts as well.
 */
#include <math.h>

#include <drapps/sched.h>

#include "base/clock.h"
#include "exec/cache_stage.h"

/* --- consumers --- */

/* pool lock: the time in the present state; *wait_ns and *step_ns: the sums, that time included. */
static uint64_t count_time(const dr__exec *e, uint64_t *wait_ns, uint64_t *step_ns)
{
    const uint64_t past = e->consumers.state == DR__CONSUMER_AWAY ? 0 : dr__now_ns() - e->consumers.since_ns;
    *wait_ns = e->consumers.wait_ns + (e->consumers.state == DR__CONSUMER_WAITS ? past : 0);
    *step_ns = e->consumers.step_ns + (e->consumers.state == DR__CONSUMER_STEPS ? past : 0);
    return past;
}

void dr__consumer_set_state(dr__exec *e, dr__consumer what)
{
    e->consumers.since_ns += count_time(e, &e->consumers.wait_ns, &e->consumers.step_ns);
    if (e->consumers.state == DR__CONSUMER_AWAY)
        e->consumers.since_ns = dr__now_ns();
    e->consumers.state = what;
}

uint64_t dr__exec_idle_ns(dr__exec *e)
{
    uint64_t wait_ns, step_ns;
    dr__pool_lock();
    const uint64_t past = count_time(e, &wait_ns, &step_ns);
    const dr__consumer what = e->run.running ? e->consumers.state : DR__CONSUMER_AWAY;
    dr__pool_unlock();
    return what == DR__CONSUMER_AWAY ? UINT64_MAX : what == DR__CONSUMER_WAITS ? 0 : past;
}

/* --- gauges --- */

/* pool lock */
static uint64_t count_ready(const dr__exec *e)
{
    uint64_t n = 0;
    for (int i = 0; i < DR__RING; i++)
        n += e->ring[i] && e->ring[i]->ready;
    return n;
}

/* pool lock */
static uint64_t count_parked(const dr__exec *e)
{
    uint64_t n = 0;
    for (const dr__parked *p = e->lanes.parked; p; p = p->next)
        n++;
    return n;
}

/* pool lock: samples that may be claimed now. */
static uint64_t count_unclaimed(const dr__exec *e)
{
    const uint64_t left = e->order.n_local - e->progress.claimed, ahead = dr__prefetch_window(e),
                   open = e->progress.opened - e->progress.oldest;
    if (e->unordered.on) {
        const uint64_t end = dr__unordered_window(e);
        return end > e->progress.claimed ? DR_MIN(end - e->progress.claimed, left) : 0;
    }
    const dr_batch *b = e->progress.opened ? e->ring[(e->progress.opened - 1) % DR__RING] : NULL;
    const uint64_t of_open = b ? b->n_slots - b->used : 0;
    return DR_MIN(of_open + (ahead > open ? ahead - open : 0) * e->budget.batch_slots, left);
}

dr__fill dr__exec_fill(dr__exec *e)
{
    dr__pool_lock();
    const double batches = (double)dr__prefetch_window(e), samples = batches * (double)e->budget.batch_slots;
    const double may_be_fetched = dr__read_ahead_most(e);
    const dr__fill fill = {
        .unclaimed = DR_MIN((double)count_unclaimed(e) / samples, 1),
        .fetched = e->knobs.readers > 0 || e->read_ahead.n > 0 ? DR_MIN(e->read_ahead.n / may_be_fetched, 1) : NAN,
        .parked = DR_MIN((double)count_parked(e) / samples, 1),
        .ready = DR_MIN((double)count_ready(e) / batches, 1),
    };
    dr__pool_unlock();
    return fill;
}

/* pool lock */
static void fill_gauges(const dr__exec *e, double *flow)
{
    const size_t batch_bytes = dr__prefetch_batch_bytes(e);
    const uint64_t open = e->progress.opened - e->progress.delivered;
    int waiting = 0;
    for (const dr__waiter *p = e->consumers.queue; p; p = p->next)
        waiting++;
    flow[DR_FLOW_READY] = (double)count_ready(e);
    flow[DR_FLOW_OPEN] = (double)open;
    flow[DR_FLOW_ACTIVE] = e->run.active;
    flow[DR_FLOW_FETCHED] = e->read_ahead.n;
    flow[DR_FLOW_PARKED] = (double)count_parked(e);
    flow[DR_FLOW_BYTES] = (double)(open * batch_bytes + e->lanes.bytes);
    flow[DR_FLOW_BYTES_LIMIT] = (double)e->budget.batch_bytes;
    flow[DR_FLOW_BATCH_BYTES] = (double)batch_bytes;
    flow[DR_FLOW_BATCH_SAMPLES] = (double)e->budget.batch_slots;
    flow[DR_FLOW_CONSUMERS] = waiting;
}

/* --- sums --- */

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static void fill_sums(const dr__stats *s, double *flow)
{
    flow[DR_FLOW_SAMPLES] = (double)atomic_load(&s->delivered);
    flow[DR_FLOW_BATCHES] = (double)atomic_load(&s->batches);
    flow[DR_FLOW_WORKED] = (double)atomic_load(&s->samples);
    flow[DR_FLOW_READ] = seconds(atomic_load(&s->read_ns));
    flow[DR_FLOW_WORK] = seconds(atomic_load(&s->work_ns));
    flow[DR_FLOW_CPU] = seconds(atomic_load(&s->cpu_ns));
    flow[DR_FLOW_BYTES_READ] = (double)atomic_load(&s->bytes_read);
    flow[DR_FLOW_LATENCY] = seconds(atomic_load(&s->batch.sum_ns));
    flow[DR_FLOW_SLOW_WORK] = seconds(atomic_load(&s->slow_ns));
    flow[DR_FLOW_CACHE_HITS] = (double)atomic_load(&s->cache_hits);
    flow[DR_FLOW_CACHE_MISSES] = (double)atomic_load(&s->cache_misses);
    flow[DR_FLOW_BAD] = (double)atomic_load(&s->bad_samples);
}

void dr__exec_flow(dr__exec *e, double *flow)
{
    uint64_t wait_ns, step_ns;
    fill_sums(&e->stats, flow);
    flow[DR_FLOW_SLOW] = (double)atomic_load(&e->lanes.slow_samples);
    flow[DR_FLOW_CACHE_FILL] = dr__cache_usage(e);
    for (int i = 0; i < 5; i++)
        flow[DR_FLOW_CODEC + i] = atomic_load(&e->stats.codec[i]);
    dr__pool_lock();
    count_time(e, &wait_ns, &step_ns);
    fill_gauges(e, flow);
    dr__pool_unlock();
    flow[DR_FLOW_WAIT] = seconds(wait_ns);
    flow[DR_FLOW_STEP] = seconds(step_ns);
}

void dr__exec_spreads(dr__exec *e, dr_spread *spreads)
{
    dr__histogram_spread(&e->stats.wait, &spreads[DR_SPREAD_WAIT]);
    dr__histogram_spread(&e->stats.batch, &spreads[DR_SPREAD_LATENCY]);
}
