/* lanes.c: who works at slow samples, and those that wait for it. */
#include "exec/lanes.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/exec.h"

enum {
    BUDGET_PART = 4,    /* of the memory for batches may be parked records */
    CREDIT_SAMPLES = 8, /* slow ones */
};

/* --- workers --- */

/* pool lock: the slow samples' part of the workers: one at least, and never all. */
static int most_slow(const dr__exec *e)
{
    const int share = (int)(dr__predict_slow_share(&e->lanes.predict) * e->knobs.workers + 0.99);
    return DR_MAX(DR_MIN(share, e->knobs.workers - 1), 1);
}

/* pool lock: workers at slow samples, those included that take as long unforeseen. */
static int now_slow(const dr__exec *e)
{
    const uint64_t slow_ns = dr__predict_slow_ns(&e->lanes.predict), now = dr__now_ns();
    return e->lanes.running + (slow_ns < now ? dr__pool_busy_since(e, now - slow_ns) : 0);
}

/* --- shares --- */

static bool has_share(const dr__lanes *lanes)
{
    return atomic_load_explicit(&lanes->share, memory_order_relaxed) > 0;
}

void dr__lane_set_share(dr__lanes *lanes, double share)
{
    atomic_store(&lanes->share, share);
    atomic_store(&lanes->credit, 0);
}

/* Slow samples are owed so much more or less, within some samples' worth: while there is only one kind, the other does
 * not save up for later. */
static void owe(dr__lanes *lanes, double units, double sample)
{
    const int64_t most = (int64_t)DR_MIN(CREDIT_SAMPLES * sample, 1e18);
    int64_t was = atomic_load(&lanes->credit), now;
    do
        now = DR_MAX(DR_MIN(was + (int64_t)units, most), -most);
    while (!atomic_compare_exchange_weak(&lanes->credit, &was, now));
}

void dr__lane_book(dr__lanes *lanes, double units)
{
    const double slow_units = (double)atomic_load_explicit(&lanes->predict.slow_units, memory_order_relaxed);
    if (has_share(lanes))
        owe(lanes, units * atomic_load(&lanes->share), slow_units);
}

static void book_slow(dr__lanes *lanes, double units)
{
    if (has_share(lanes))
        owe(lanes, units * (atomic_load(&lanes->share) - 1), units);
}

/* pool lock: is it their turn? */
static bool slow_is_due(const dr__exec *e)
{
    if (!has_share(&e->lanes))
        return now_slow(e) < most_slow(e);
    return atomic_load(&e->lanes.credit) >= 0 && now_slow(e) < DR_MAX(e->knobs.workers - 1, 1);
}

/* pool lock: a worker without other work helps.  The last one does not while the batches that a consumer takes next
 * will make room for fast samples: then nobody would be there for those. */
static bool may_help(const dr__exec *e)
{
    return e->knobs.workers < 2 || now_slow(e) < e->knobs.workers - 1 || !dr__claim_will_open(e);
}

/* pool lock */
static bool may_run_now(const dr__exec *e, bool more)
{
    if (e->knobs.workers < 2 && !has_share(&e->lanes))
        return true;
    return !more && (slow_is_due(e) || (!dr__claim_is_open(e) && may_help(e)));
}

/* --- parking --- */

dr__parked *dr__lane_new(dr__lanes *lanes)
{
    dr__parked *p = lanes->spare;
    if (!p)
        return dr__alloc_zero(1, sizeof *p);
    lanes->spare = p->next;
    return p;
}

void dr__lane_keep(dr__lanes *lanes, dr__parked *p)
{
    p->next = lanes->spare;
    lanes->spare = p;
}

void dr__lane_count(dr__lanes *lanes, dr__parked *p)
{
    lanes->bytes += p->record.block_cap - p->counted;
    p->counted = p->record.block_cap;
}

/* pool lock: NULL: the budget says no, or there is no memory. */
static dr__parked *new_parked(dr__exec *e, size_t bytes)
{
    const dr__parked *spare = e->lanes.spare;
    const size_t had = spare ? spare->counted : 0;
    return e->lanes.bytes - had + bytes > e->budget.batch_bytes / BUDGET_PART ? NULL : dr__lane_new(&e->lanes);
}

static bool goes_before(const dr__parked *a, const dr__parked *b)
{
    if (a->job.batch && a->job.batch->number != b->job.batch->number)
        return a->job.batch->number < b->job.batch->number;
    return a->cost > b->cost;
}

/* pool lock */
static void enqueue(dr__lanes *lanes, dr__parked *p)
{
    dr__parked **at = &lanes->parked;
    while (*at && !goes_before(p, *at))
        at = &(*at)->next;
    p->next = *at;
    *at = p;
}

bool dr__lane_park(dr__exec *e, dr__workbench *bench, const dr__job *job, bool more)
{
    atomic_fetch_add(&e->lanes.slow_samples, 1);
    atomic_store(&bench->began_ns, 0); /* it is counted by its lane */
    dr__pool_lock();
    dr__parked *p = may_run_now(e, more) ? NULL : new_parked(e, bench->record.block_cap);
    if (p) {
        dr__record_swap(&p->record, &bench->record);
        dr__lane_count(&e->lanes, p);
        p->job = *job;
        p->cost = job->cost;
        enqueue(&e->lanes, p);
        dr__pool_wake();
    } else {
        e->lanes.running++;
        book_slow(&e->lanes, job->cost);
    }
    dr__pool_unlock();
    return p;
}

void dr__lane_leave(dr__exec *e)
{
    dr__pool_lock();
    e->lanes.running--;
    dr__pool_unlock();
}

dr__parked *dr__lane_take(dr__exec *e, bool within_share)
{
    dr__parked *p = e->lanes.parked;
    if (!p || !(within_share ? slow_is_due(e) : may_help(e)))
        return NULL;
    e->lanes.parked = p->next;
    e->lanes.running++;
    book_slow(&e->lanes, p->cost);
    return p;
}

void dr__lane_drop(dr__exec *e, dr__parked **parked)
{
    dr__parked *p = *parked;
    *parked = NULL;
    if (!p)
        return;
    dr__lane_keep(&e->lanes, p);
    e->lanes.running--;
}

void dr__lane_unpark(dr__exec *e, dr__parked *p, dr__workbench *bench)
{
    if (!p->job.unread)
        dr__record_swap(&p->record, &bench->record);
    dr__pool_lock();
    dr__lane_count(&e->lanes, p);
    if (e->lanes.bytes >
        e->budget.batch_bytes / (2 * BUDGET_PART)) { /* what the bench had is larger, and readers need room */
        dr__record_free(&p->record);
        dr__lane_count(&e->lanes, p);
    }
    dr__lane_keep(&e->lanes, p);
    if (e->knobs.readers)
        dr__pool_wake_one(e, true); /* there is room again */
    dr__pool_unlock();
}

static void free_list(dr__parked **list)
{
    while (*list) {
        dr__parked *p = *list;
        *list = p->next;
        dr__record_free(&p->record);
        dr__free(p);
    }
}

void dr__lane_clear(dr__lanes *lanes)
{
    free_list(&lanes->parked);
    free_list(&lanes->spare);
    lanes->bytes = 0;
}
