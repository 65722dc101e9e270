/* shmpool_flow.c: what a shmpool did and does now, as controllers see it. */
#include <drapps/shmpool_controller.h>

#include "base/clock.h"
#include "base/spread.h"
#include "shmpool/shared.h"

/* --- the consumer --- */

void dr__consumer_comes(dr_shmpool *c, uint64_t now)
{
    const uint64_t left = atomic_exchange(&c->board->consumer_left_ns, 0);
    if (left && now > left)
        atomic_fetch_add(&c->board->step_ns, now - left);
}

/* A consumer waits in several calls, each with a timeout; its wait ends with its batch.  (With several consumers, the
 * time of one may be counted for another.) */
static void count_wait(struct dr__board *b, uint64_t ns, dr_status with)
{
    if (with == DR_AGAIN) {
        atomic_fetch_add(&b->waited_ns, ns);
        return;
    }
    const uint64_t waited = atomic_exchange(&b->waited_ns, 0) + ns;
    if (with != DR_OK)
        return;
    atomic_fetch_add(&b->wait_sum_ns, waited);
    atomic_fetch_add(&b->wait_n[dr__spread_bin(waited)], 1);
}

void dr__consumer_leaves(dr_shmpool *c, uint64_t came_ns, dr_status with)
{
    const uint64_t now = dr__now_ns();
    atomic_fetch_add(&c->board->wait_ns, now - came_ns);
    count_wait(c->board, now - came_ns, with);
    atomic_store(&c->board->consumer_left_ns, now);
}

/* --- the board, with its lock held --- */

static void add_workers(const dr_shmpool *c, double *flow)
{
    for (uint32_t i = 0; i < c->board->max_workers; i++) {
        const struct dr__worker *w = &c->workers[i];
        flow[DR_FLOW_WORK] += (double)w->busy_ns * 1e-9;
        flow[DR_FLOW_ACTIVE] += w->pid && (w->kind || w->finishing);
    }
}

static void add_batches(const dr_shmpool *c, double *flow)
{
    for (uint64_t seq = c->board->head; seq < c->board->tail; seq++) {
        const struct dr__entry *e = dr__entry_of(c, seq);
        if (!e->live || e->dropped || e->batch == DR__GONE)
            continue;
        flow[DR_FLOW_READY] += e->batch == DR__READY;
        flow[DR_FLOW_OPEN] += e->n_claimed || e->n_taken || e->n_over;
        flow[DR_FLOW_PARKED] += e->n_slow;
    }
}

static void add_counts(const struct dr__board *b, double *flow)
{
    flow[DR_FLOW_SAMPLES] = (double)b->taken_samples;
    flow[DR_FLOW_BATCHES] = (double)b->n_results;
    flow[DR_FLOW_WORKED] = (double)b->n_samples;
    flow[DR_FLOW_LATENCY] = (double)b->latency_ns * 1e-9;
    flow[DR_FLOW_SLOW] = (double)b->n_slow_samples;
    flow[DR_FLOW_SLOW_WORK] = (double)b->slow_ns * 1e-9;
    flow[DR_FLOW_BAD] = (double)b->n_bad;
    flow[DR_FLOW_DEATHS] = (double)b->n_died;
    flow[DR_FLOW_BYTES] = (double)b->arena.held;
    flow[DR_FLOW_BYTES_LIMIT] = (double)b->window_bytes;
    flow[DR_FLOW_BATCH_BYTES] = (double)b->arena.largest;
    flow[DR_FLOW_BATCH_SAMPLES] = (double)b->batch_samples;
}

void dr_shmpool_flow(dr_shmpool *c, double flow[DR_N_FLOWS])
{
    struct dr__board *b = c->board;
    dr__shmpool_lock(c);
    add_counts(b, flow);
    add_workers(c, flow);
    add_batches(c, flow);
    dr__shmpool_unlock(c);
    const uint64_t left = atomic_load(&b->consumer_left_ns), now = dr__now_ns();
    flow[DR_FLOW_WAIT] = (double)atomic_load(&b->wait_ns) * 1e-9;
    flow[DR_FLOW_STEP] = (double)(atomic_load(&b->step_ns) + (left && now > left ? now - left : 0)) * 1e-9;
    flow[DR_FLOW_CONSUMERS] = atomic_load(&b->ready_waiters);
}

void dr__shmpool_spreads(dr_shmpool *c, dr_spread spreads[DR_N_SPREADS])
{
    struct dr__board *b = c->board;
    dr_spread *wait = &spreads[DR_SPREAD_WAIT], *latency = &spreads[DR_SPREAD_LATENCY];
    wait->sum = (double)atomic_load(&b->wait_sum_ns) * 1e-9;
    for (int i = 0; i < DR_SPREAD_BINS; i++)
        wait->n[i] = atomic_load(&b->wait_n[i]);
    dr__shmpool_lock(c);
    latency->sum = (double)b->latency_ns * 1e-9;
    for (int i = 0; i < DR_SPREAD_BINS; i++)
        latency->n[i] = b->latency_n[i];
    dr__shmpool_unlock(c);
}
