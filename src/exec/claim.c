/* claim.c: which samples of a loader are worked on next.
 *
 * Workers claim a few samples at a time: of the newest batch, or, in an unordered loader, of the prefetch window.  A
 * new batch is opened while the prefetch window allows it.
 *
 * Staging: the memory of a new batch is deferred where that saves it, while a consumer waits for the batch before it
 * (whose last samples are being made), or until a consumer that has received a batch releases the one it held.  Where
 * the consumer is the faster side, two batches of memory then do instead of three.  Meanwhile workers fill the batch's
 * staging area.  Staged samples are copied later, so the area is kept small.  An epoch in which deferring was in vain
 * (a slow sample, a consumer that keeps its batches) defers no more.
 */
#include "base/clock.h"
#include "exec/exec.h"

enum {
    STAGED_PER_WORKER = 2,        /* samples a worker makes while a batch is handed over */
    MIN_SAMPLES_TO_STAGE = 16,    /* of a batch, per worker: at most 1/8 of the batch is staged and copied */
    MIN_BYTES_TO_DEFER = 1 << 20, /* of a batch */
    MAX_DEFER_LAST_SAMPLES_NS = 20000000,
    MAX_DEFER_HANDOVER_NS = 1000000,
    RECHECK_NS = 50000,
};

static uint64_t batch_slots(const dr__exec *e, uint64_t batch)
{
    return DR_MIN(e->o.batch_size, e->order.n_local - batch * e->o.batch_size);
}

/* Samples per claim: small samples are claimed together, so that the lock is taken about once per 64 KB of work. */
static uint64_t claim_size(const dr__exec *e, uint64_t n_slots)
{
    uint64_t samples = atomic_load(&e->stats.samples);
    if (samples < 16)
        return 1;
    uint64_t mean = DR_MAX(atomic_load(&e->stats.bytes_read) / samples, e->budget.sample_bytes);
    uint64_t most = DR_MAX(n_slots / (uint64_t)(2 * DR_MAX(e->knobs.workers, 1)), 1);
    return DR_MAX(DR_MIN(65536 / DR_MAX(mean, 1), most), 1);
}

/* Whether the pool holds the memory of a released batch. */
static bool has_idle_memory(const dr__exec *e)
{
    return dr__bufpool_has_idle(e->buffers, e->o.batch_size * e->budget.largest_field_bytes);
}

/* before: number of batches opened before the one whose memory may be deferred. */
static bool may_defer_memory(const dr__exec *e, uint64_t before)
{
    const bool wanted = before == e->progress.delivered || e->consumers.waiting;
    const size_t bytes = e->o.batch_size * e->budget.sample_bytes;
    return wanted && !e->staging.off && e->knobs.workers >= 1 && bytes >= MIN_BYTES_TO_DEFER &&
           dr__bufpool_bytes(e->buffers) >= 2 * bytes && !has_idle_memory(e);
}

static bool defer_memory(dr__exec *e)
{
    const uint64_t before = e->progress.opened - 1, now = dr__now_ns();
    if (!may_defer_memory(e, before))
        return false;
    e->staging.deferred_ns = e->staging.deferred_ns ? e->staging.deferred_ns : now;
    e->staging.off = now - e->staging.deferred_ns >
                     (before == e->progress.delivered ? MAX_DEFER_HANDOVER_NS : MAX_DEFER_LAST_SAMPLES_NS);
    if (!e->staging.off)
        dr__pool_wake_at(now + RECHECK_NS);
    return !e->staging.off;
}

static void fail_out_of_memory(dr__exec *e, uint64_t n_slots)
{
    dr_error err;
    dr__fail(&err, DR_ERR_NOMEM, "out of memory for a batch of %llu samples", (unsigned long long)n_slots);
    dr__exec_fail(e, &err);
}

static dr_batch *open_batch(dr__exec *e)
{
    const dr__push *push = e->pushed.head;
    const uint64_t n_slots = push ? push->n : batch_slots(e, e->progress.opened);
    const uint64_t workers = (uint64_t)DR_MAX(e->knobs.workers, 1), staged = STAGED_PER_WORKER * workers;
    const bool deferred = n_slots >= MIN_SAMPLES_TO_STAGE * workers && may_defer_memory(e, e->progress.opened);
    dr_batch *batch = dr__batch_new(e, push ? push->number : e->order.first_batch + e->progress.opened, n_slots,
                                    deferred ? staged : 0);
    if (!batch) {
        fail_out_of_memory(e, n_slots);
        return NULL;
    }
    e->ring[e->progress.opened++ % DR__RING] = batch;
    e->staging.deferred_ns = 0;
    return batch;
}

/* The newest batch, if it has unclaimed slots; else NULL. */
static dr_batch *batch_to_claim(const dr__exec *e)
{
    dr_batch *b = e->progress.opened ? e->ring[(e->progress.opened - 1) % DR__RING] : NULL;
    return b && b->used < b->n_slots ? b : NULL;
}

/* Whether the batch has memory for another slot.  A batch moves from its staging area to its own memory as soon as a
 * released batch leaves some, and at the latest when the area is full, unless deferring is still allowed. */
static bool has_slots(dr__exec *e, dr_batch *b)
{
    if (!b->is_staged || (b->used < b->n_staged && !has_idle_memory(e)))
        return true;
    if (defer_memory(e))
        return false;
    if (!dr__batch_allocate(e, b))
        fail_out_of_memory(e, b->n_slots);
    return !b->is_staged;
}

static bool claim_in_batch(dr__exec *e, dr__claim *c, uint64_t most)
{
    dr_batch *b = batch_to_claim(e);
    if (!b && (e->progress.opened - e->progress.oldest >= dr__prefetch_window(e) || !(b = open_batch(e))))
        return false;
    if (!has_slots(e, b))
        return false;
    c->batch = b;
    c->slot = b->used;
    const uint64_t some = DR_MIN(claim_size(e, b->n_slots), b->is_staged ? STAGED_PER_WORKER : UINT64_MAX);
    c->n = DR_MIN(most ? most : some, (b->is_staged ? b->n_staged : b->n_slots) - b->used);
    b->used += c->n;
    return true;
}

static bool claim_in_window(dr__exec *e, dr__claim *c, uint64_t most)
{
    const dr__push *push = e->pushed.head;
    uint64_t end = DR_MIN(dr__unordered_window(e), push ? push->first + push->n : e->order.n_local);
    if (e->progress.claimed >= end)
        return false;
    c->n = DR_MIN(most ? most : claim_size(e, e->o.batch_size), end - e->progress.claimed);
    return true;
}

/* most: the most samples to claim; 0: claim_size decides. */
static bool claim_unread(dr__exec *e, dr__claim *c, uint64_t most)
{
    if (e->progress.claimed == e->order.n_local ||
        !(e->unordered.on ? claim_in_window(e, c, most) : claim_in_batch(e, c, most)))
        return false;
    if (e->o.pushed_order)
        c->push = dr__pushed_claim(&e->pushed, c->first, c->n);
    e->progress.claimed += c->n;
    return true;
}

bool dr__claim_is_open(const dr__exec *e)
{
    if (e->read_ahead.head)
        return true;
    if (e->progress.claimed == e->order.n_local)
        return false;
    if (e->unordered.on)
        return e->progress.claimed < dr__unordered_window(e);
    return batch_to_claim(e) || e->progress.opened - e->progress.oldest < dr__prefetch_window(e);
}

/* pool lock */
static bool has_ready(const dr__exec *e)
{
    for (int i = 0; i < DR__RING; i++)
        if (e->ring[i] && e->ring[i]->ready)
            return true;
    return false;
}

bool dr__claim_will_open(const dr__exec *e)
{
    if (e->order.complete && e->progress.claimed == e->order.n_local)
        return false;
    if (e->unordered.on)
        return e->progress.delivered_samples < e->unordered.worked_below && has_ready(e);
    const dr_batch *b = e->ring[e->progress.oldest % DR__RING];
    return e->progress.oldest < e->progress.opened && b && b->ready;
}

static bool is_running(const dr__exec *e)
{
    return e->run.running && !e->run.failed && !e->run.cancelled;
}

bool dr__claim_for_reader(dr__exec *e, dr__claim *c)
{
    *c = (dr__claim){ .first = e->progress.claimed };
    return is_running(e) && claim_unread(e, c, 1);
}

/* pool lock: whether a worker may read samples itself.  Samples from the readers would wait during that read, so only
 * while the readers have fewer samples in hand than there are workers. */
static bool may_read(const dr__exec *e)
{
    return e->read_ahead.active < DR_MAX(e->knobs.workers, 1);
}

bool dr__claim_next(dr__exec *e, dr__claim *c)
{
    if (!is_running(e) || e->run.active >= DR_MAX(e->knobs.workers, 1))
        return false;
    *c = (dr__claim){ .first = e->progress.claimed, .slow = dr__lane_take(e, true) };
    if (!c->slow && !(c->read_ahead = dr__read_ahead_take(e)) && !(may_read(e) && claim_unread(e, c, 0)) &&
        !(c->slow = dr__lane_take(e, false)))
        return false;
    e->run.active++;
    return true;
}

void dr__claim_done(dr__exec *e, dr__claim *claim)
{
    dr__push_unref(&claim->push);
    e->run.active--;
    if (!e->run.running || e->knobs.workers == 0) /* wakes dr__exec_stop, and a consumer that works itself */
        dr__cond_broadcast(&e->changed);
}
