/* claim.c: which samples of a loader are worked on next.
 *
 * Workers take a few at a time: of the batch opened last, or, out of order, of the window.  A further batch is opened
 * while the settings and the budget allow it.
 */
#include "base/clock.h"
#include "exec/exec.h"

enum {
    STAGED_PER_WORKER = 2, /* for each worker: what it makes while a batch is handed over */
    SAMPLES_FOR_PATIENCE =
        16, /* of a batch for each worker: the staging area, which is copied, is an eighth of it at most */
    WORTH_BYTES = 1 << 20, /* of a batch: less memory is not waited for */
    LAST_SAMPLES_NS = 20000000,
    HANDOVER_NS = 1000000,
    LOOK_AGAIN_NS = 50000,
};

static uint64_t slots_of(const dr__exec *e, uint64_t batch)
{
    return DR_MIN(e->o.batch_size, e->order.n_local - batch * e->o.batch_size);
}

/* Tiny samples are claimed by the handful, so that the lock is taken once for 64 KB of work. */
static uint64_t chunk(const dr__exec *e, uint64_t n_slots)
{
    uint64_t samples = atomic_load(&e->stats.samples);
    if (samples < 16)
        return 1;
    uint64_t mean = DR_MAX(atomic_load(&e->stats.bytes_read) / samples, e->budget.sample_bytes);
    uint64_t most = DR_MAX(n_slots / (uint64_t)(2 * DR_MAX(e->knobs.workers, 1)), 1);
    return DR_MAX(DR_MIN(65536 / DR_MAX(mean, 1), most), 1);
}

/* Of a batch that was let go of. */
static bool has_idle_memory(const dr__exec *e)
{
    return dr__bufpool_has_idle(e->buffers, e->o.batch_size * e->budget.largest_field_bytes);
}

/* The memory of a batch is put off for a moment where that saves it: while a consumer waits for the batch before it, of
 * which the last samples are being made, and until a consumer that got a batch lets go of the one it had.  Then two
 * batches do where the consumer is the faster side, instead of three.  Meanwhile workers fill the staging area.  Not
 * with so many workers that much would be copied, and not again in an epoch where it was in vain: a slow
 * sample, or a consumer that keeps its batches.
 *
 * before: batches opened before it. */
static bool may_be_put_off(const dr__exec *e, uint64_t before)
{
    const bool wanted = before == e->progress.delivered || e->consumers.waiting;
    const size_t bytes = e->o.batch_size * e->budget.sample_bytes;
    return wanted && !e->staging.off && e->knobs.workers >= 1 && bytes >= WORTH_BYTES &&
           dr__bufpool_bytes(e->buffers) >= 2 * bytes && !has_idle_memory(e);
}

static bool put_off(dr__exec *e)
{
    const uint64_t before = e->progress.opened - 1, now = dr__now_ns();
    if (!may_be_put_off(e, before))
        return false;
    e->staging.deferred_ns = e->staging.deferred_ns ? e->staging.deferred_ns : now;
    e->staging.off = now - e->staging.deferred_ns > (before == e->progress.delivered ? HANDOVER_NS : LAST_SAMPLES_NS);
    if (!e->staging.off)
        dr__pool_look_at(now + LOOK_AGAIN_NS);
    return !e->staging.off;
}

static void fail_for_memory(dr__exec *e, uint64_t n_slots)
{
    dr_error err;
    dr__fail(&err, DR_ERR_NOMEM, "out of memory for a batch of %llu samples", (unsigned long long)n_slots);
    dr__exec_fail(e, &err);
}

static dr_batch *open_batch(dr__exec *e)
{
    const dr__push *push = e->pushed.head;
    const uint64_t n_slots = push ? push->n : slots_of(e, e->progress.opened);
    const uint64_t workers = (uint64_t)DR_MAX(e->knobs.workers, 1), staged = STAGED_PER_WORKER * workers;
    const bool late = n_slots >= SAMPLES_FOR_PATIENCE * workers && may_be_put_off(e, e->progress.opened);
    dr_batch *batch =
        dr__batch_new(e, push ? push->number : e->order.first_batch + e->progress.opened, n_slots, late ? staged : 0);
    if (!batch) {
        fail_for_memory(e, n_slots);
        return NULL;
    }
    e->ring[e->progress.opened++ % DR__RING] = batch;
    e->staging.deferred_ns = 0;
    return batch;
}

/* The batch opened last, while some of it is not yet claimed. */
static dr_batch *batch_to_claim(const dr__exec *e)
{
    dr_batch *b = e->progress.opened ? e->ring[(e->progress.opened - 1) % DR__RING] : NULL;
    return b && b->used < b->n_slots ? b : NULL;
}

/* Is there memory for a further slot?  A batch whose staging area is full gets its own, unless that is put off; and
 * before, as soon as there is some: what is made in the staging area has to be copied. */
static bool has_slots(dr__exec *e, dr_batch *b)
{
    if (!b->is_staged || (b->used < b->n_staged && !has_idle_memory(e)))
        return true;
    if (put_off(e))
        return false;
    if (!dr__batch_allocate(e, b))
        fail_for_memory(e, b->n_slots);
    return !b->is_staged;
}

static bool claim_of_batch(dr__exec *e, dr__claim *c, uint64_t most)
{
    dr_batch *b = batch_to_claim(e);
    if (!b && (e->progress.opened - e->progress.oldest >= dr__prefetch_window(e) || !(b = open_batch(e))))
        return false;
    if (!has_slots(e, b))
        return false;
    c->batch = b;
    c->slot = b->used;
    const uint64_t some = DR_MIN(chunk(e, b->n_slots), b->is_staged ? STAGED_PER_WORKER : UINT64_MAX);
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
    c->n = DR_MIN(most ? most : chunk(e, e->o.batch_size), end - e->progress.claimed);
    return true;
}

/* most: 0: as many as pay. */
static bool claim_unread(dr__exec *e, dr__claim *c, uint64_t most)
{
    if (e->progress.claimed == e->order.n_local ||
        !(e->unordered.on ? claim_in_window(e, c, most) : claim_of_batch(e, c, most)))
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

/* pool lock: worked samples alone make no room: a consumer takes whole batches. */
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

static bool goes_on(const dr__exec *e)
{
    return e->run.running && !e->run.failed && !e->run.cancelled;
}

bool dr__claim_one(dr__exec *e, dr__claim *c)
{
    *c = (dr__claim){ .first = e->progress.claimed };
    return goes_on(e) && claim_unread(e, c, 1);
}

/* pool lock: may who works read, too?  What comes from the readers meanwhile would wait for as long as a read takes:
 * so only while they are at fewer samples than there are workers. */
static bool may_read(const dr__exec *e)
{
    return e->read_ahead.active < DR_MAX(e->knobs.workers, 1);
}

bool dr__claim_next(dr__exec *e, dr__claim *c)
{
    if (!goes_on(e) || e->run.active >= DR_MAX(e->knobs.workers, 1))
        return false;
    *c = (dr__claim){ .first = e->progress.claimed, .slow = dr__lane_take(e, true) };
    if (!c->slow && !(c->read_ahead = dr__read_ahead_take(e)) && !(may_read(e) && claim_unread(e, c, 0)) &&
        !(c->slow = dr__lane_take(e, false)))
        return false;
    e->run.active++;
    return true;
}

void dr__claim_over(dr__exec *e, dr__claim *claim)
{
    dr__push_unref(&claim->push);
    e->run.active--;
    if (!e->run.running || e->knobs.workers == 0) /* who stops it waits for this, and a caller that is to work itself */
        dr__cond_broadcast(&e->changed);
}
