/* consume.c: the consumer's side: starting, waiting for batches, stopping. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/exec.h"
#include "source/transfer.h"

void dr__exec_fail(dr__exec *e, const dr_error *err)
{
    if (!e->run.failed)
        e->run.error = *err;
    e->run.failed = true;
    dr__cond_broadcast(&e->changed);
}

/* pool lock */
static void make_ready(dr__exec *e, dr_batch *b, const dr_error *err)
{
    if (err->status && !b->error.status)
        b->error = *err;
    b->ready_ns = dr__now_ns();
    e->budget.item_bytes = DR_MAX(e->budget.item_bytes, atomic_load(&b->item_bytes));
    b->ready = true;
    dr__histogram_add(&e->stats.batch, b->ready_ns - b->opened_ns);
    dr__cond_broadcast(&e->changed);
}

void dr__slots_done(dr__exec *e, dr_batch *b, uint64_t n, int by)
{
    if (atomic_fetch_sub(&b->remaining, n) != n)
        return;
    dr_error err = { 0 };
    const uint64_t start = dr__now_ns();
    if (!b->error.status && dr__batch_replace_empty(e, b, by, &err) != DR_OK)
        b->error = err;
    if (b->error.status)
        dr__batch_discard(b);
    else
        dr__batch_finish(e, b, &err);
    b->n_accounted = e->o.equal_batches ? b->used : b->n_samples;
    atomic_fetch_add(&e->stats.finish_ns, dr__now_ns() - start);
    dr__spans_batch(e, b, start, by);
    dr__pool_lock();
    make_ready(e, b, &err);
    dr__pool_unlock();
}

/* pool lock: the ring slot of the batch to deliver next, or NULL. */
static dr_batch **find_ready(dr__exec *e)
{
    if (e->o.in_order) {
        dr_batch **at = &e->ring[e->progress.delivered % DR__RING];
        return *at && (*at)->ready && e->progress.delivered < e->progress.opened ? at : NULL;
    }
    dr_batch **best = NULL;
    for (int i = 0; i < DR__RING; i++)
        if (e->ring[i] && e->ring[i]->ready && (!best || e->ring[i]->ready_ns < (*best)->ready_ns))
            best = &e->ring[i];
    return best;
}

bool dr__exec_is_finished(const dr__exec *e)
{
    if (!e->order.complete)
        return false;
    if (!e->unordered.on)
        return e->progress.delivered == e->order.n_batches;
    return e->progress.delivered_samples == e->order.n_local && e->progress.delivered == e->progress.opened;
}

/* pool lock */
static void count_delivery(dr__exec *e, dr_batch *b)
{
    e->progress.delivered++;
    e->staging.deferred_ns = 0;
    while (e->progress.oldest < e->progress.opened && !e->ring[e->progress.oldest % DR__RING])
        e->progress.oldest++;
    atomic_fetch_add(&e->stats.batches, !b->error.status);
    atomic_fetch_add(&e->stats.delivered, b->error.status ? 0 : b->n_samples);
    for (uint64_t i = 0; i < b->n_samples && !e->o.pushed_order; i++)
        b->n_padded += b->positions[i] >= e->set->n_places;
    if (e->unordered.on)
        dr__unordered_delivered(e, b);
    else if (e->o.pushed_order)
        dr__pushed_delivered(e, b->n_slots);
    dr__pool_wake();
}

/* pool lock: the batch reports its bad samples, and earlier ones that no batch has reported. */
static void attach_bad_reports(dr__exec *e, dr_batch *b)
{
    if (e->bad.unreported) {
        json_array_extend(e->bad.unreported, b->bad);
        json_decref(b->bad);
        b->bad = e->bad.unreported;
        e->bad.unreported = NULL;
    }
    char *text = b->bad ? json_dumps(b->bad, JSON_COMPACT) : NULL;
    b->bad_text = text ? dr__strdup(text) : NULL;
    free(text);
}

/* pool lock: delivers the batch at `at`; DR_AGAIN: it was empty and was dropped.  In pushed order, empty and failed
 * batches are delivered as well: the caller counts what comes back. */
static dr_status deliver(dr__exec *e, dr_batch **at, dr_batch **out, dr_error *err)
{
    dr_batch *b = *at;
    *at = NULL;
    if (b->error.status && !dr__exec_survives(e, b->error.status)) {
        dr__exec_fail(e, &b->error);
        dr_batch_unref(&b);
        return dr__fail(err, e->run.error.status, "%s", e->run.error.text);
    }
    count_delivery(e, b);
    attach_bad_reports(e, b);
    if (b->n_samples == 0 && !e->o.pushed_order) {
        e->bad.unreported = b->bad;
        b->bad = NULL;
        dr_batch_unref(&b);
        return DR_AGAIN;
    }
    *out = b;
    return b->error.status ? dr__fail(err, b->error.status, "%s", b->error.text) : DR_OK;
}

/* pool lock: pushed order, unordered: whether a batch without samples must report skipped ones.  All pushed samples are
 * finished, and the batch being filled lacks as many as were skipped.  The caller pushes more only when it learns of
 * these.  (Replaced samples are reported by the batch that holds their replacements.) */
static bool must_deliver_reports(const dr__exec *e)
{
    return e->o.pushed_order && e->unordered.on && e->o.on_bad_sample == DR_BAD_SKIP && e->bad.unreported &&
           e->progress.finished == e->order.n_local;
}

/* pool lock */
static dr_status deliver_reports(dr__exec *e, dr_batch **out, dr_error *err)
{
    dr_batch *b = dr__batch_new(e, e->order.first_batch + e->progress.opened, 1, 0);
    b = b && dr__batch_make_empty(b) ? b : (dr_batch_unref(&b), NULL);
    if (!b) {
        dr__fail(err, DR_ERR_NOMEM, "out of memory for a batch");
        dr__exec_fail(e, err);
        return err->status;
    }
    e->progress.opened++;
    count_delivery(e, b);
    attach_bad_reports(e, b);
    *out = b;
    return DR_OK;
}

/* pool lock, released while working: with workers = 0, the consumer works itself.  false: there was no work. */
static bool work_in_caller(dr__exec *e)
{
    dr__claim claim;
    if (e->knobs.workers > 0 || e->caller.busy)
        return false;
    if (!dr__claim_next(e, &claim))
        return e->run.failed; /* claiming may just have failed for lack of memory: do not wait then */
    e->caller.busy = true;
    dr__pool_unlock();
    if (!e->caller.bench)
        e->caller.bench = dr__workbench_new();
    const atomic_bool *before = dr__transfer_watch(&e->run.abandoned);
    if (e->caller.bench)
        dr__claim_work(e, &claim, e->caller.bench);
    dr__transfer_watch(before);
    dr__pool_lock();
    if (!e->caller.bench) {
        dr_error err;
        dr__lane_abandon(e, &claim.slow);
        if (claim.read_ahead)
            dr__lane_recycle(&e->lanes, claim.read_ahead);
        dr__fail(&err, DR_ERR_NOMEM, "out of memory");
        dr__exec_fail(e, &err);
    }
    e->caller.busy = false;
    dr__claim_done(e, &claim);
    dr__cond_broadcast(&e->changed); /* another consumer may work now */
    dr__pool_wake();                 /* or threads, if `workers` was raised meanwhile */
    return true;
}

/* pool lock */
static bool wait_for_change(dr__exec *e, uint64_t deadline_ns)
{
    e->consumers.waiting++;
    bool in_time = dr__cond_wait(&e->changed, dr__pool_mutex(), deadline_ns);
    e->consumers.waiting--;
    return in_time;
}

static void enqueue_waiter(dr__exec *e, dr__waiter *me)
{
    dr__waiter **at = &e->consumers.queue;
    while (*at)
        at = &(*at)->next;
    *at = me;
}

/* The next consumer in the queue may go on now: with a batch, the end, or work to do. */
static void dequeue_waiter(dr__exec *e, dr__waiter *me)
{
    dr__waiter **at = &e->consumers.queue;
    while (*at != me)
        at = &(*at)->next;
    *at = me->next;
    if (at == &e->consumers.queue && e->consumers.queue)
        dr__cond_broadcast(&e->changed);
}

/* pool lock: the consumer that has waited longest gets the next batch. */
static dr_status wait_for_batch(dr__exec *e, const dr__waiter *me, uint64_t deadline_ns, dr_batch **out, dr_error *err)
{
    for (;;) {
        if (e->run.cancelled || !e->run.running)
            return dr__fail(err, DR_ERR_CANCELLED, "cancelled");
        if (e->run.failed) /* checked before ready batches: an error ends the epoch */
            return dr__fail(err, e->run.error.status, "%s", e->run.error.text);
        dr_batch **at = e->consumers.queue == me ? find_ready(e) : NULL;
        if (at) {
            dr_status status = deliver(e, at, out, err);
            if (status != DR_AGAIN)
                return status;
            continue;
        }
        if (e->consumers.queue == me && must_deliver_reports(e))
            return deliver_reports(e, out, err);
        if (dr__exec_is_finished(e))
            return DR_END;
        bool in_time = work_in_caller(e) ? dr__now_ns() < deadline_ns : wait_for_change(e, deadline_ns);
        if (!in_time && !(e->consumers.queue == me && find_ready(e)) && !e->run.failed)
            return DR_AGAIN;
    }
}

static dr_status next_locked(dr__exec *e, uint64_t deadline_ns, dr_batch **out, dr_error *err)
{
    dr__waiter me = { 0 };
    if (!e->consumers.queue)
        dr__consumer_set_state(e, DR__CONSUMER_WAITS);
    enqueue_waiter(e, &me);
    dr_status status = wait_for_batch(e, &me, deadline_ns, out, err);
    dequeue_waiter(e, &me);
    if (!e->consumers.queue)
        dr__consumer_set_state(e, *out || status == DR_AGAIN ? DR__CONSUMER_STEPS : DR__CONSUMER_AWAY);
    return status;
}

dr_status dr__exec_next(dr__exec *e, int timeout_ms, dr_batch **out, dr_error *err)
{
    uint64_t start = dr__now_ns();
    uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : start + (uint64_t)timeout_ms * 1000000u;
    *out = NULL;
    dr__pool_lock();
    dr_status status = next_locked(e, deadline, out, err);
    uint64_t waited = e->consumers.unserved_ns + dr__now_ns() - start;
    e->consumers.unserved_ns = status == DR_AGAIN ? waited : 0;
    dr__pool_unlock();
    dr__spans_next(e, status, *out, start);
    if (status == DR_OK)
        dr__histogram_add(&e->stats.wait, waited);
    return status;
}

void dr__exec_stop(dr__exec *e)
{
    atomic_store(&e->run.abandoned, true);
    dr__pool_lock();
    e->run.running = false;
    if (!e->consumers.queue)
        dr__consumer_set_state(e, DR__CONSUMER_AWAY);
    dr__cond_broadcast(&e->changed);
    while (e->run.active > 0 || e->read_ahead.active > 0)
        dr__cond_wait(&e->changed, dr__pool_mutex(), UINT64_MAX);
    for (int i = 0; i < DR__RING; i++)
        dr_batch_unref(&e->ring[i]);
    e->unordered.filling = NULL;
    dr__pushed_clear(&e->pushed);
    dr__read_ahead_clear(&e->read_ahead);
    dr__lane_clear(&e->lanes);
    dr__pool_unlock();
}

static void begin(dr__exec *e, uint64_t epoch, uint64_t base, uint64_t first_batch)
{
    e->order.epoch = epoch;
    e->order.base = base;
    e->order.first_batch = first_batch;
    e->progress.claimed = e->progress.finished = e->unordered.worked_below = 0;
    e->progress.opened = e->progress.delivered = e->progress.oldest = e->progress.delivered_samples = 0;
    e->bad.n = 0;
    e->budget.batch_slots = e->o.batch_size;
    e->consumers.times = (dr__consumer_times){ 0 }; /* time before this epoch is not a step */
    e->staging.deferred_ns = e->consumers.unserved_ns = 0;
    e->run.failed = e->run.cancelled = e->staging.off = false;
    atomic_store(&e->run.abandoned, false);
    json_decref(e->bad.unreported);
    e->bad.unreported = NULL;
    e->order.complete = !e->o.pushed_order;
    e->order.n_local = e->order.n_batches = 0;
    if (e->order.complete)
        dr__order_count(e, base, &e->order.n_local, &e->order.n_batches);
}

dr_status dr__exec_start(dr__exec *e, uint64_t epoch, uint64_t base, uint64_t first_batch, const uint8_t *done,
                         dr_error *err)
{
    dr__exec_stop(e);
    DR_TRY(dr__pushed_begin(e, err));
    dr__pool_lock();
    begin(e, epoch, base, first_batch);
    dr_status status = dr__unordered_begin(e, done, err);
    e->run.running = status == DR_OK;
    int workers = e->knobs.workers, prefetch = e->knobs.prefetch;
    dr__pool_unlock();
    DR_TRY(status);
    atomic_fetch_add(&e->stats.epochs, 1);
    dr__trace_event(e->trace, "start", "\"epoch\":%llu,\"base\":%llu,\"samples\":%llu,\"workers\":%d,\"prefetch\":%d",
                    (unsigned long long)epoch, (unsigned long long)base, (unsigned long long)e->order.n_local, workers,
                    prefetch);
    status = dr__pool_add(e, err);
    if (status != DR_OK) /* no thread could be started: no batch would ever be ready */
        dr__exec_stop(e);
    return status;
}
