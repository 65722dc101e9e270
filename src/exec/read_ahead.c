/* read_ahead.c: readers' claims and the queue of samples read ahead, bounded in number and in memory. */
#include "exec/read_ahead.h"

#include "base/alloc.h"
#include "exec/exec.h"

enum {
    BUDGET_PART = 8, /* 1/8 of the memory for batches; parked slow samples may use another 1/8 */
    HALF_LIFE = 64,  /* samples after which the size of the largest record counts half */
};

/* pool lock: the size to expect of the next record: that of the largest, which decays, so that one very large sample
 * does not stop reading ahead for good. */
static size_t expected_bytes(const dr__exec *e)
{
    return e->read_ahead.largest >> DR_MIN((e->progress.claimed - e->read_ahead.largest_at) / HALF_LIFE, 63);
}

int dr__read_ahead_most(const dr__exec *e)
{
    const int of_workers = DR__READ_AHEAD_PER_WORKER * DR_MAX(e->knobs.workers, 1);
    return e->far ? DR_MAX(of_workers, DR__READ_AHEAD_PER_READER * e->knobs.readers) : of_workers;
}

/* pool lock: whether one more sample may be read ahead. */
static bool has_room(const dr__exec *e)
{
    const dr__read_ahead *f = &e->read_ahead;
    const size_t had = e->lanes.spare ? dr__record_memory(&e->lanes.spare->record) : 0;
    const size_t one = expected_bytes(e), reading = (size_t)f->active * one; /* not counted yet */
    return f->n < dr__read_ahead_most(e) &&
           e->lanes.bytes + reading + DR_MAX(one, had) - had <= e->budget.batch_bytes / BUDGET_PART;
}

bool dr__read_ahead_claim(dr__exec *e, dr__claim *c)
{
    if (!e->run.running || e->read_ahead.active >= e->knobs.readers || !has_room(e))
        return false; /* nothing may be added after dr__exec_stop has cleared the queue */
    dr__parked *p = dr__lane_get_entry(&e->lanes);
    if (!p)
        return false; /* out of memory: workers read */
    if (!dr__claim_for_reader(e, c)) {
        dr__lane_recycle(&e->lanes, p);
        return false;
    }
    c->read_ahead = p;
    e->read_ahead.active++;
    return true;
}

void dr__read_ahead_work(dr__exec *e, dr__claim *c, dr__workbench *bench)
{
    dr__parked *p = c->read_ahead;
    dr__record_swap(&p->record, &bench->record);
    c->n = dr__claim_read(e, c, bench, &p->job);
    p->job.reader = -bench->worker;
    dr__record_swap(&p->record, &bench->record);
}

/* pool lock: counts the bytes of a sample that was read; beyond the budget they are freed, and a worker reads again. */
static void account_bytes(dr__exec *e, dr__parked *p)
{
    if (dr__record_memory(&p->record) >= expected_bytes(e)) {
        e->read_ahead.largest = dr__record_memory(&p->record);
        e->read_ahead.largest_at = e->progress.claimed;
    }
    dr__lane_update_bytes(&e->lanes, p);
    if (e->lanes.bytes <= e->budget.batch_bytes / BUDGET_PART)
        return;
    dr__record_free(&p->record);
    dr__lane_update_bytes(&e->lanes, p);
    p->job.read_failed = true;
}

/* pool lock: inserts by rank-local index, mostly at the end. */
static void enqueue(dr__read_ahead *f, dr__parked *p)
{
    dr__parked **at = f->tail && f->tail->job.local < p->job.local ? &f->tail->next : &f->head;
    while (*at && (*at)->job.local < p->job.local)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
    f->tail = p->next ? f->tail : p;
    f->n++;
}

void dr__read_ahead_done(dr__exec *e, dr__claim *c)
{
    account_bytes(e, c->read_ahead);
    if (c->n)
        enqueue(&e->read_ahead, c->read_ahead);
    else /* the sample needs no work */
        dr__lane_recycle(&e->lanes, c->read_ahead);
    e->read_ahead.active--;
    dr__push_unref(&c->push);
    dr__pool_wake_one(e, false);
    if (!e->run.running || e->knobs.workers == 0) /* wakes dr__exec_stop, and a consumer that works itself */
        dr__cond_broadcast(&e->changed);
}

dr__parked *dr__read_ahead_take(dr__exec *e)
{
    dr__read_ahead *f = &e->read_ahead;
    dr__parked *p = f->head;
    if (!p)
        return NULL;
    f->head = p->next;
    f->tail = f->head ? f->tail : NULL;
    f->n--;
    return p;
}

void dr__read_ahead_clear(dr__read_ahead *f)
{
    while (f->head) {
        dr__parked *p = f->head;
        f->head = p->next;
        dr__record_free(&p->record);
        dr__free(p);
    }
    *f = (dr__read_ahead){ .largest = f->largest };
}
