/* reap.c: supervising workers: what they do now, and what becomes of the work of those that died.
 *
 * Here only told fields are changed; dr__repair does the rest.
 */
#include "shmpool/shared.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"

dr_status dr_shmpool_worker_at(dr_shmpool *c, int worker, dr_shmpool_worker_state *out, dr_error *err)
{
    if (!dr__is_worker(c, worker))
        return dr__fail(err, DR_ERR_ARG, "shmpool: worker must be 0 to %u, got %d", c->board->max_workers - 1, worker);
    const struct dr__worker *w = &c->workers[worker];
    dr__shmpool_lock(c);
    *out = (dr_shmpool_worker_state){ .pid = w->pid,
                                      .kind = w->finishing ? DR_SHMPOOL_FINISH : w->kind,
                                      .since_ns = atomic_load(&w->since_ns),
                                      .claims = w->claims,
                                      .samples = w->samples,
                                      .busy_ns = w->busy_ns };
    if (out->kind == DR_SHMPOOL_FINISH)
        out->tag = dr__batch_tag(c, &c->entries[w->finish_entry]);
    if (out->kind == DR_SHMPOOL_WORK) {
        out->tag = c->entries[w->entry].tag;
        out->slot = w->first + atomic_load(&w->at);
    }
    dr__shmpool_unlock(c);
    return DR_OK;
}

void dr_shmpool_dismiss(dr_shmpool *c, int worker)
{
    struct dr__wakes wakes = { 0 };
    if (!dr__is_worker(c, worker))
        return;
    dr__shmpool_lock(c);
    c->workers[worker].dismissed = 1;
    dr__wake_worker(c, &wakes, (uint32_t)worker);
    dr__shmpool_unlock_wake(c, &wakes);
}

/* --- slots --- */

struct grave {
    dr_shmpool *shmpool;
    int worker;
    dr_shmpool_redo *redone;
    uint32_t room, n;
};

/* A slot that is given up; of a batch that is made at once, all are. */
static void fail_slots(dr_shmpool *c, struct dr__entry *e, uint32_t slot, uint8_t state)
{
    struct dr__slot *slots = dr__slots(c, e);
    for (uint32_t i = e->whole_only ? 0 : slot; i < (e->whole_only ? e->n_slots : slot + 1); i++)
        if (slots[i].state != DR__SLOT_OVER)
            dr__slot_over(c, e, i, &(struct dr__sample_end){ .state = state });
}

/* The slot that the worker was at has one more death; the others of its claim are as before it. */
static void return_slot(struct grave *g, struct dr__entry *e, uint32_t i, bool was_at)
{
    struct dr__slot *s = &dr__slots(g->shmpool, e)[i];
    if (s->state != DR__SLOT_CLAIMED || s->worker != g->worker)
        return;
    s->attempts -= !was_at && s->attempts;
    if (was_at && s->attempts >= g->shmpool->board->max_attempts) {
        fail_slots(g->shmpool, e, i, DR_SHMPOOL_DIED);
        return;
    }
    s->state = DR__SLOT_WAITING;
    if (e->dropped)
        return;
    if (g->n < g->room)
        g->redone[g->n] = (dr_shmpool_redo){ e->tag, i };
    g->n++;
}

static void return_claim(struct grave *g)
{
    struct dr__worker *w = &g->shmpool->workers[g->worker];
    struct dr__entry *e = &g->shmpool->entries[w->entry];
    uint32_t at = w->first + atomic_load(&w->at);
    if (w->kind != DR_SHMPOOL_WORK || !e->live)
        return;
    return_slot(g, e, at, true); /* first: it may fail all of them */
    for (uint32_t i = w->first; i < w->first + w->n; i++)
        if (i != at)
            return_slot(g, e, i, false);
}

/* --- batches --- */

static void fail_batch(struct dr__entry *e)
{
    e->head = 0;
    e->head_bytes = 0;
    e->failed = 1;
    e->ready_ns = dr__now_ns();
    dr__step();
    e->batch = DR__READY;
}

static void return_batches(dr_shmpool *c, int worker)
{
    for (uint32_t i = 0; i < c->board->n_entries; i++) {
        struct dr__entry *e = &c->entries[i];
        if (!e->live || e->batch != DR__FINISHING || e->finisher != worker)
            continue;
        if (e->finish_attempts >= c->board->max_attempts)
            fail_batch(e);
        else
            e->batch = DR__COMPLETE;
    }
}

uint32_t dr_shmpool_reap(dr_shmpool *c, int worker, dr_shmpool_redo *redone, uint32_t room)
{
    if (!dr__is_worker(c, worker))
        return 0;
    struct dr__worker *w = &c->workers[worker];
    struct grave g = { .shmpool = c, .worker = worker, .redone = redone, .room = room };
    dr__shmpool_lock(c);
    return_claim(&g);
    return_batches(c, worker);
    if (w->pid && w->pid != getpid()) /* a process that reaps itself is not dead */
        dr__arena_free_of(c->base, &c->board->arena, (uint16_t)worker, w->pid);
    c->board->n_died += w->pid && !w->dismissed;
    dr__meter_forget(c, worker);
    w->kind = w->finishing = w->waits = w->slow = w->dismissed = 0;
    w->pid = 0;
    c->board->n_redone += g.n;
    dr__repair(c);
    dr__shmpool_unlock_wake_all(c);
    return g.n;
}

void dr_shmpool_give_up(dr_shmpool *c, int worker)
{
    if (!dr__is_worker(c, worker))
        return;
    struct dr__worker *w = &c->workers[worker];
    dr__shmpool_lock(c);
    uint32_t slot = w->first + atomic_load(&w->at);
    struct dr__entry *e = &c->entries[w->entry];
    if (w->finishing)
        c->entries[w->finish_entry].finish_attempts = UINT8_MAX;
    else if (w->kind == DR_SHMPOOL_WORK && e->live)
        fail_slots(c, e, slot, DR_SHMPOOL_STUCK);
    dr__repair(c);
    dr__shmpool_unlock_wake_all(c);
}
