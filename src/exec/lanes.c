/* lanes.c: who works at slow samples, and those that wait for it. */
#include "exec/lanes.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/exec.h"

enum { BUDGET_PART = 4 }; /* of the memory for batches may be parked records */

/* --- workers --- */

/* pool lock: the slow samples' part of the workers: one at least, and never all. */
static int most_slow(const dr__exec *e)
{
    const int share = (int)(dr__predict_slow_share(&e->lanes.predict) * e->workers + 0.99);
    return DR_MAX(DR_MIN(share, e->workers - 1), 1);
}

/* pool lock: workers at slow samples, those included that take as long unforeseen. */
static int now_slow(const dr__exec *e)
{
    const uint64_t slow_ns = dr__predict_slow_ns(&e->lanes.predict), now = dr__now_ns();
    return e->lanes.running + (slow_ns < now ? dr__pool_busy_since(e, now - slow_ns) : 0);
}

/* pool lock: a worker without other work helps.  The last one does not while the batches that a consumer takes next
 * will make room for fast samples: then nobody would be there for those. */
static bool may_help(const dr__exec *e)
{
    return now_slow(e) < e->workers - 1 || !dr__claim_will_open(e);
}

/* pool lock */
static bool may_run_now(const dr__exec *e, bool more)
{
    return e->workers < 2 || (!more && (now_slow(e) < most_slow(e) || (!dr__claim_is_open(e) && may_help(e))));
}

/* --- parking --- */

/* pool lock: one with or without memory; NULL: the budget says no. */
static dr__parked *new_parked(dr__exec *e, size_t bytes)
{
    dr__lanes *lanes = &e->lanes;
    dr__parked *p = lanes->spare;
    const size_t had = p ? p->record.block_cap : 0;
    if (lanes->bytes - had + bytes > e->batch_budget / BUDGET_PART)
        return NULL;
    if (p)
        lanes->spare = p->next;
    else if (!(p = dr__alloc_zero(1, sizeof *p)))
        return NULL;
    lanes->bytes += bytes - had;
    return p;
}

static void swap_records(dr__record *a, dr__record *b)
{
    const dr__record hold = *a;
    *a = *b;
    *b = hold;
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
        swap_records(&p->record, &bench->record);
        p->job = *job;
        p->cost = bench->cost;
        enqueue(&e->lanes, p);
        dr__pool_wake();
    } else {
        e->lanes.running++;
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
    if (!p || !(within_share ? now_slow(e) < most_slow(e) : may_help(e)))
        return NULL;
    e->lanes.parked = p->next;
    e->lanes.running++;
    return p;
}

void dr__lane_drop(dr__exec *e, dr__parked **parked)
{
    dr__parked *p = *parked;
    *parked = NULL;
    if (!p)
        return;
    p->next = e->lanes.spare;
    e->lanes.spare = p;
    e->lanes.running--;
}

void dr__lane_unpark(dr__exec *e, dr__parked *p, dr__workbench *bench)
{
    swap_records(&p->record, &bench->record);
    dr__pool_lock();
    e->lanes.bytes += p->record.block_cap - bench->record.block_cap;
    p->next = e->lanes.spare;
    e->lanes.spare = p;
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
