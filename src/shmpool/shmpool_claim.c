/* shmpool_claim.c: the workers' side: claims, samples that are done, batches that are finished. */
#include "shmpool/shared.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"

static dr_status check_worker(const dr_shmpool *c, int worker, dr_error *err)
{
    if (!dr__is_worker(c, worker))
        return dr__fail(err, DR_ERR_ARG, "shmpool: worker must be 0 to %u, got %d", c->board->max_workers - 1, worker);
    return DR_OK;
}

dr_status dr_shmpool_attach(dr_shmpool *c, int worker, int pid, dr_error *err)
{
    DR_TRY(check_worker(c, worker, err));
    struct dr__worker *w = &c->workers[worker];
    dr__shmpool_lock(c);
    int before = w->pid;
    bool busy = before && before != pid;
    if (!busy) {
        w->pid = pid;
        w->waits = w->warm = 0; /* it may have been dismissed already */
        w->cpu_ns = 0;          /* from its first claim on */
    }
    dr__shmpool_unlock(c);
    if (busy)
        return dr__fail(err, DR_ERR_STATE, "shmpool: worker %d is process %d, which was not reaped", worker, before);
    return DR_OK;
}

/* --- claiming --- */

static void mark_time(struct dr__worker *w, uint64_t now)
{
    w->mark_ns = now;
    atomic_store_explicit(&w->since_ns, now, memory_order_relaxed);
}

static void claim_work(dr_shmpool *c, int worker, const struct dr__choice *choice, dr_shmpool_claim *out)
{
    struct dr__worker *w = &c->workers[worker];
    struct dr__entry *e = choice->entry;
    struct dr__slot *slots = dr__slots(c, e);
    w->entry = (uint32_t)(e - c->entries);
    w->first = choice->first;
    w->n = choice->n;
    w->slow = slots[choice->first].slow;
    atomic_store_explicit(&w->at, 0, memory_order_relaxed);
    dr__step();
    w->kind = DR_SHMPOOL_WORK;
    dr__step();
    for (uint32_t i = choice->first; i < choice->first + choice->n; i++) {
        dr__count_waiting(c, e, i, -1);
        slots[i].worker = (uint16_t)worker;
        slots[i].attempts++;
        dr__step();
        slots[i].state = DR__SLOT_CLAIMED;
    }
    e->n_claimed += choice->n;
    c->board->started_slots += choice->n;
    c->board->n_slow_samples += w->slow;
    *out = (dr_shmpool_claim){ .kind = DR_SHMPOOL_WORK,
                               .batch = w->entry,
                               .tag = e->tag,
                               .first = w->first,
                               .n = w->n,
                               .n_slots = e->n_slots,
                               .whole = e->keep && w->n == e->n_slots,
                               .request = dr__request(c, e),
                               .request_bytes = e->request_bytes };
}

static void claim_finish(dr_shmpool *c, int worker, struct dr__entry *e, dr_shmpool_claim *out)
{
    struct dr__worker *w = &c->workers[worker];
    w->finish_entry = (uint32_t)(e - c->entries);
    w->finishing = 1;
    e->finisher = (uint16_t)worker;
    e->finish_attempts++;
    dr__step();
    e->batch = DR__FINISHING;
    c->board->n_complete--;
    const dr_shmpool_sample *samples = dr__samples(c, e);
    *out = (dr_shmpool_claim){ .kind = DR_SHMPOOL_FINISH,
                               .batch = w->finish_entry,
                               .tag = dr__batch_tag(c, e),
                               .n = e->n_slots,
                               .n_slots = e->n_slots,
                               .slab = e->slab,
                               .samples = samples };
    if (e->keep) {
        out->request = dr__request(c, e);
        out->request_bytes = e->request_bytes;
    }
}

/* What is to be done now, if the ceiling lets it begin; *until_ns: else when to look again. */
static void choose(dr_shmpool *c, int worker, uint64_t now, struct dr__choice *out, uint64_t *until_ns)
{
    dr__choose(c, worker, out);
    if (out->kind == DR_SHMPOOL_WORK && !dr__meter_begin(c, worker, now, until_ns))
        out->kind = 0;
}

/* One look at the board; DR_AGAIN: nothing to do, and dr__sleep may be called with *seen, until *until_ns. */
static dr_status try_claim(dr_shmpool *c, int worker, dr_shmpool_claim *out, unsigned *seen, uint64_t *until_ns)
{
    struct dr__worker *w = &c->workers[worker];
    dr_status status = DR_OK;
    struct dr__choice choice = { 0 };
    struct dr__wakes wakes = { 0 };
    *until_ns = UINT64_MAX;
    dr__shmpool_lock(c);
    dr__meter_read(c, worker, c->board->ceiling.cpus > 0 ? dr__process_cpu_ns() : 0);
    if (w->dismissed || atomic_load(&c->board->closed)) {
        *out = (dr_shmpool_claim){ .kind = DR_SHMPOOL_LEAVE };
        dr__shmpool_unlock(c);
        return DR_OK;
    }
    const uint64_t now = dr__now_ns();
    choose(c, worker, now, &choice, until_ns);
    w->waits = !choice.kind;
    if (choice.kind) {
        mark_time(w, now);
        w->claims++;
    }
    if (choice.kind == DR_SHMPOOL_WORK)
        claim_work(c, worker, &choice, out);
    else if (choice.kind == DR_SHMPOOL_FINISH)
        claim_finish(c, worker, choice.entry, out);
    else
        status = DR_AGAIN;
    if (choice.kind == DR_SHMPOOL_WORK && choice.entry->n_waiting)
        dr__wake_some(c, &wakes, 1); /* there is more: each wakes one more, as long as that is so */
    *seen = atomic_load(&w->wake);
    dr__shmpool_unlock_wake(c, &wakes);
    return status;
}

dr_status dr_shmpool_claim_next(dr_shmpool *c, int worker, int timeout_ms, dr_shmpool_claim *out, dr_error *err)
{
    DR_TRY(check_worker(c, worker, err));
    struct dr__worker *w = &c->workers[worker];
    if (w->kind || w->finishing)
        return dr__fail(err, DR_ERR_STATE, "shmpool: worker %d claims before it is done with its last claim", worker);
    uint64_t deadline = dr__deadline(timeout_ms);
    for (;;) {
        unsigned seen;
        uint64_t until_ns;
        dr_status status = try_claim(c, worker, out, &seen, &until_ns);
        if (status != DR_AGAIN || (!dr__sleep(&w->wake, seen, DR_MIN(deadline, until_ns)) && deadline <= until_ns))
            return status;
    }
}

/* --- working --- */

void dr_shmpool_begin(dr_shmpool *c, int worker, uint32_t i)
{
    if (!dr__is_worker(c, worker) || i >= c->workers[worker].n)
        return;
    struct dr__worker *w = &c->workers[worker];
    atomic_store_explicit(&w->since_ns, dr__now_ns(), memory_order_relaxed); /* for whoever looks: no order needed */
    atomic_store_explicit(&w->at, i, memory_order_relaxed);
}

dr_status dr__check_claim(const dr_shmpool *c, int worker, uint32_t i, uint32_t n, dr_error *err)
{
    DR_TRY(check_worker(c, worker, err));
    const struct dr__worker *w = &c->workers[worker];
    if (w->kind != DR_SHMPOOL_WORK)
        return dr__fail(err, DR_ERR_STATE, "shmpool: worker %d has no claim", worker);
    if (!n || i >= w->n || n > w->n - i)
        return dr__fail(err, DR_ERR_ARG, "shmpool: slots %u to %u of a claim of %u", i, i + n - 1, w->n);
    return DR_OK;
}

/* --- done --- */

/* What follows when slots are over or a batch is finished: later posts may be allowed now. */
static void after_slots(dr_shmpool *c, struct dr__entry *e, bool finished, struct dr__wakes *wakes)
{
    uint64_t open = c->board->open;
    dr__entry_sweep(c, e);
    dr__board_advance(c);
    if (c->board->held_back && (c->board->open != open || finished)) {
        c->board->held_back = false;
        dr__wake_some(c, wakes, UINT32_MAX);
    }
    if (c->board->n_complete)
        dr__wake_some(c, wakes, (uint32_t)c->board->n_complete);
    if (e->dropped)
        dr__wake_main(c, wakes);
}

/* The batch that a slot went to, if this completed it. */
static struct dr__entry *completed(const dr_shmpool *c, const struct dr__entry *e, uint32_t slot)
{
    const struct dr__slot *s = &dr__slots(c, e)[slot];
    struct dr__entry *to = s->placed ? &c->entries[s->batch] : NULL;
    return to && to->batch == DR__COMPLETE && !to->dropped ? to : NULL;
}

static bool is_its_own(const struct dr__slot *s, int worker)
{
    return s->state == DR__SLOT_CLAIMED && s->worker == worker;
}

/* The claim is over when none of its slots is at work.  From the end: that one is mostly done last. */
static void end_claim_if_over(const dr_shmpool *c, int worker)
{
    struct dr__worker *w = &c->workers[worker];
    const struct dr__slot *slots = dr__slots(c, &c->entries[w->entry]);
    uint32_t left = w->n;
    while (left && !is_its_own(&slots[w->first + left - 1], worker))
        left--;
    if (!left)
        w->kind = 0;
}

/* The end of n slots.  They share the time since the last mark; a slot that was begun by itself counts from there. */
static struct dr__sample_end end_of(struct dr__worker *w, uint32_t n, uint8_t state, dr_shmpool_block block)
{
    const uint64_t now = dr__now_ns(), since = atomic_load_explicit(&w->since_ns, memory_order_relaxed);
    const uint64_t from = n == 1 ? DR_MAX(since, w->mark_ns) : w->mark_ns;
    const uint64_t ns = now > from ? now - from : 1;
    w->busy_ns += ns;
    mark_time(w, now);
    return (struct dr__sample_end){ .state = state, .ns = DR_MAX(ns / n, 1), .begun_ns = now - ns, .block = block };
}

/* What was handed over before is not the worker's any more. */
static void free_its_own(dr_shmpool *c, int worker, dr_shmpool_block block)
{
    const struct dr__node *n = dr__arena_find(c->base, &c->board->arena, block);
    if (n && n->holder == worker)
        dr__arena_free(c->base, &c->board->arena, block);
}

/* The slots of a claim are over, but for those that were so before; the first batch that this completed, or NULL.
 *
 * What a worker makes first takes longer than anything after it (modules, caches, pages that are copied after a fork):
 * as one of few times it would make claims too small, so it is none of the times. */
static struct dr__entry *slots_over(dr_shmpool *c, int worker, uint32_t i, uint32_t n, const struct dr__sample_end *end)
{
    struct dr__worker *w = &c->workers[worker];
    struct dr__entry *e = &c->entries[w->entry], *ready = NULL;
    for (uint32_t slot = w->first + i; slot < w->first + i + n; slot++) {
        if (!is_its_own(&dr__slots(c, e)[slot], worker)) {
            free_its_own(c, worker, end->block); /* was given up meanwhile, or is done already */
            continue;
        }
        dr__slot_over(c, e, slot, end);
        w->samples++;
        c->board->slow_ns += w->slow ? end->ns : 0;
        if (end->state == DR_SHMPOOL_OK && w->warm)
            dr__times_add(&c->board->times, end->ns, 1);
        struct dr__entry *to = completed(c, e, slot);
        ready = ready ? ready : to;
    }
    w->warm = true;
    return ready;
}

dr_status dr_shmpool_done(dr_shmpool *c, int worker, uint32_t i, uint32_t n, dr_shmpool_block block, bool bad,
                          bool *finish, dr_shmpool_claim *out, dr_error *err)
{
    DR_TRY(dr__check_claim(c, worker, i, n, err));
    if (block && n != 1)
        return dr__fail(err, DR_ERR_ARG, "shmpool: n must be 1 where a block is given, got %u", n);
    struct dr__worker *w = &c->workers[worker];
    struct dr__wakes wakes = { 0 };
    const struct dr__sample_end end = end_of(w, n, bad ? DR_SHMPOOL_BAD : DR_SHMPOOL_OK, block);
    dr__shmpool_lock(c);
    struct dr__entry *ready = slots_over(c, worker, i, n, &end);
    *finish = ready != NULL;
    if (ready)
        claim_finish(c, worker, ready, out);
    end_claim_if_over(c, worker);
    after_slots(c, &c->entries[w->entry], false, &wakes);
    dr__shmpool_unlock_wake(c, &wakes);
    return DR_OK;
}

/* --- finish --- */

static bool is_whole_claim(const dr_shmpool *c, const struct dr__worker *w, uint32_t batch)
{
    const struct dr__entry *e = &c->entries[batch];
    return w->kind == DR_SHMPOOL_WORK && w->entry == batch && e->keep && w->n == e->n_slots && !w->finishing;
}

/* A whole claim that was not reported slot by slot. */
static void end_whole(dr_shmpool *c, int worker)
{
    struct dr__worker *w = &c->workers[worker];
    struct dr__entry *e = &c->entries[w->entry];
    const struct dr__sample_end end = end_of(w, w->n, DR_SHMPOOL_OK, 0);
    slots_over(c, worker, 0, w->n, &end);
    end_claim_if_over(c, worker);
    dr_shmpool_claim ignored;
    if (e->batch == DR__COMPLETE && !e->dropped)
        claim_finish(c, worker, e, &ignored);
}

static void note_size(struct dr__arena *a, const dr_shmpool *c, const struct dr__entry *e)
{
    uint64_t bytes = e->head_bytes + e->slab_bytes;
    const dr_shmpool_sample *samples = dr__samples(c, e);
    for (uint32_t i = 0; i < e->n_slots; i++)
        bytes += dr_shmpool_block_bytes(c, samples[i].block);
    a->largest = DR_MAX(a->largest, bytes);
}

static void end_batch(dr_shmpool *c, struct dr__entry *e, dr_shmpool_block head, size_t head_bytes, bool failed)
{
    e->head = head;
    e->head_bytes = head_bytes;
    e->failed = failed;
    e->ready_ns = dr__now_ns();
    note_size(&c->board->arena, c, e);
    dr__step();
    e->batch = DR__READY;
    dr__step();
    dr__arena_give(c->base, &c->board->arena, head, DR__BY_BOARD, 0);
    dr__batch_ready(c, e);
    c->board->n_batches++;
}

dr_status dr_shmpool_finish(dr_shmpool *c, int worker, uint32_t batch, dr_shmpool_block head, size_t head_bytes,
                            bool failed, dr_error *err)
{
    DR_TRY(check_worker(c, worker, err));
    struct dr__worker *w = &c->workers[worker];
    bool whole = batch < c->board->n_entries && is_whole_claim(c, w, batch);
    if (!whole && !(w->finishing && w->finish_entry == batch))
        return dr__fail(err, DR_ERR_STATE, "shmpool: worker %d finishes batch %u, which it did not claim", worker,
                        batch);
    struct dr__entry *e = &c->entries[batch];
    struct dr__wakes wakes = { 0 };
    dr__shmpool_lock(c);
    if (whole)
        end_whole(c, worker);
    if (e->batch == DR__FINISHING)
        end_batch(c, e, head, head_bytes, failed);
    else
        dr__arena_free(c->base, &c->board->arena, head); /* dropped while the whole claim was being made */
    w->finishing = 0;
    w->busy_ns += dr__now_ns() - w->mark_ns;
    mark_time(w, dr__now_ns());
    after_slots(c, e, true, &wakes);
    if (!c->board->in_order || e->seq == c->board->take || e->dropped)
        dr__wake_main(c, &wakes);
    dr__shmpool_unlock_wake(c, &wakes);
    return DR_OK;
}
