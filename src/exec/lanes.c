/* lanes.c: how many workers run slow samples, and the queue of parked ones. */
#include "exec/lanes.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/exec.h"

enum {
    BUDGET_PART = 4,    /* 1/4 of the memory for batches may be parked records */
    CREDIT_SAMPLES = 8, /* limit of the credit, in slow samples */
};

/* --- workers --- */

/* pool lock: the workers that slow samples may occupy: at least one, never all. */
static int max_slow_workers(const dr__exec *e)
{
    const int share = (int)(dr__predict_slow_share(&e->lanes.predict) * e->knobs.workers + 0.99);
    return DR_MAX(DR_MIN(share, e->knobs.workers - 1), 1);
}

/* pool lock: workers at slow samples, and at samples that were not predicted to be slow but take as long. */
static int count_slow_workers(const dr__exec *e)
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

/* Adds `units` of work to what slow samples may use.  The credit is bounded by CREDIT_SAMPLES slow samples either way,
 * so that a lane without samples saves up no more than that. */
static void add_credit(dr__lanes *lanes, double units, double sample)
{
    const int64_t most = (int64_t)DR_MIN(CREDIT_SAMPLES * sample, 1e18);
    int64_t was = atomic_load(&lanes->credit), now;
    do
        now = DR_MAX(DR_MIN(was + (int64_t)units, most), -most);
    while (!atomic_compare_exchange_weak(&lanes->credit, &was, now));
}

void dr__lane_note_fast(dr__lanes *lanes, double units)
{
    const double slow_units = (double)atomic_load_explicit(&lanes->predict.slow_units, memory_order_relaxed);
    if (has_share(lanes))
        add_credit(lanes, units * atomic_load(&lanes->share), slow_units);
}

static void note_slow(dr__lanes *lanes, double units)
{
    if (has_share(lanes))
        add_credit(lanes, units * (atomic_load(&lanes->share) - 1), units);
}

/* pool lock: whether the share of slow samples allows another one now. */
static bool slow_is_due(const dr__exec *e)
{
    if (!has_share(&e->lanes))
        return count_slow_workers(e) < max_slow_workers(e);
    return atomic_load(&e->lanes.credit) >= 0 && count_slow_workers(e) < DR_MAX(e->knobs.workers - 1, 1);
}

/* pool lock: whether a worker without other work may take a slow sample beyond their share.  The last free worker may
 * not, if delivering a ready batch will make room for fast samples. */
static bool may_help(const dr__exec *e)
{
    return e->knobs.workers < 2 || count_slow_workers(e) < e->knobs.workers - 1 || !dr__claim_will_open(e);
}

/* pool lock */
static bool may_run_now(const dr__exec *e, bool more)
{
    if (e->knobs.workers < 2 && !has_share(&e->lanes))
        return true;
    return !more && (slow_is_due(e) || (!dr__claim_is_open(e) && may_help(e)));
}

/* --- parking --- */

dr__parked *dr__lane_get_entry(dr__lanes *lanes)
{
    dr__parked *p = lanes->spare;
    if (!p)
        return dr__alloc_zero(1, sizeof *p);
    lanes->spare = p->next;
    return p;
}

void dr__lane_recycle(dr__lanes *lanes, dr__parked *p)
{
    p->next = lanes->spare;
    lanes->spare = p;
}

void dr__lane_update_bytes(dr__lanes *lanes, dr__parked *p)
{
    lanes->bytes += dr__record_memory(&p->record) - p->counted;
    p->counted = dr__record_memory(&p->record);
}

/* pool lock: NULL: beyond the budget, or out of memory. */
static dr__parked *get_entry_within_budget(dr__exec *e, size_t bytes)
{
    const dr__parked *spare = e->lanes.spare;
    const size_t had = spare ? spare->counted : 0;
    return e->lanes.bytes - had + bytes > e->budget.batch_bytes / BUDGET_PART ? NULL : dr__lane_get_entry(&e->lanes);
}

static bool precedes(const dr__parked *a, const dr__parked *b)
{
    if (a->job.batch && a->job.batch->number != b->job.batch->number)
        return a->job.batch->number < b->job.batch->number;
    return a->cost > b->cost;
}

/* pool lock */
static void enqueue(dr__lanes *lanes, dr__parked *p)
{
    dr__parked **at = &lanes->parked;
    while (*at && !precedes(p, *at))
        at = &(*at)->next;
    p->next = *at;
    *at = p;
}

bool dr__lane_park(dr__exec *e, dr__workbench *bench, const dr__job *job, bool more)
{
    atomic_fetch_add(&e->lanes.slow_samples, 1);
    atomic_store(&bench->started_ns, 0); /* lanes.running counts it from now on */
    dr__pool_lock();
    dr__parked *p = may_run_now(e, more) ? NULL : get_entry_within_budget(e, dr__record_memory(&bench->record));
    if (p) {
        dr__record_swap(&p->record, &bench->record);
        dr__lane_update_bytes(&e->lanes, p);
        p->job = *job;
        p->cost = job->cost;
        enqueue(&e->lanes, p);
        dr__pool_wake();
    } else {
        e->lanes.running++;
        note_slow(&e->lanes, job->cost);
    }
    dr__pool_unlock();
    return p;
}

void dr__lane_end_slow(dr__exec *e)
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
    note_slow(&e->lanes, p->cost);
    return p;
}

void dr__lane_abandon(dr__exec *e, dr__parked **parked)
{
    dr__parked *p = *parked;
    *parked = NULL;
    if (!p)
        return;
    dr__lane_recycle(&e->lanes, p);
    e->lanes.running--;
}

void dr__lane_unpark(dr__exec *e, dr__parked *p, dr__workbench *bench)
{
    if (!p->job.read_failed)
        dr__record_swap(&p->record, &bench->record);
    dr__pool_lock();
    dr__lane_update_bytes(&e->lanes, p);
    if (e->lanes.bytes > e->budget.batch_bytes / (2 * BUDGET_PART)) { /* the bench's record was larger */
        dr__record_free(&p->record);
        dr__lane_update_bytes(&e->lanes, p);
    }
    dr__lane_recycle(&e->lanes, p);
    if (e->knobs.readers)
        dr__pool_wake_one(e, true); /* there is room for reading ahead */
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
