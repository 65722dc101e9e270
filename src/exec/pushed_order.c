/* pushed_order.c: checks, counts and queues pushed batches. */
#include <string.h>

#include "base/alloc.h"
#include "exec/exec.h"

enum { MOST_SAMPLES = 1 << 24 };

/* --- the queue --- */

void dr__push_unref(dr__push **push)
{
    if (*push && --(*push)->refs == 0)
        dr__free(*push);
    *push = NULL;
}

void dr__pushed_clear(dr__pushed *g)
{
    while (g->head) {
        dr__push *first = g->head;
        g->head = first->next;
        dr__push_unref(&first);
    }
    g->tail = &g->head;
    g->positions = g->numbers = 0;
}

dr__push *dr__pushed_claim(dr__pushed *g, uint64_t first, uint64_t n)
{
    dr__push *p = g->head;
    p->refs++;
    if (first + n < p->first + p->n)
        return p;
    g->head = p->next;
    g->tail = g->head ? g->tail : &g->head;
    p->refs--; /* the queue's */
    return p;
}

/* --- pushing --- */

dr_status dr__pushed_begin(dr__exec *e, dr_error *err)
{
    return e->o.pushed_order ? dr__occurrences_begin(&e->pushed.times, e->set->n_samples, err) : DR_OK;
}

static dr_status check_ids(const dr__exec *e, const uint64_t *ids, uint64_t n, dr_error *err)
{
    if (n < 1 || n > MOST_SAMPLES)
        return dr__fail(err, DR_ERR_ARG, "a pushed batch must have 1 to %d samples, got %llu", MOST_SAMPLES,
                        (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++)
        if (ids[i] >= e->set->n_samples)
            return dr__fail(err, DR_ERR_ARG, "%s: ids[%llu] of a pushed batch must be 0 to %llu, got %llu",
                            e->set->name, (unsigned long long)i, (unsigned long long)(e->set->n_samples - 1),
                            (unsigned long long)ids[i]);
    return DR_OK;
}

static dr_status check_times(const uint64_t *times, uint64_t n, dr_error *err)
{
    for (uint64_t i = 0; times && i < n; i++)
        if (times[i] > INT32_MAX) /* higher values are the occurrences of replacements */
            return dr__fail(err, DR_ERR_ARG, "times[%llu] of a pushed batch must be 0 to %d, got %llu",
                            (unsigned long long)i, INT32_MAX, (unsigned long long)times[i]);
    return DR_OK;
}

/* The budget was made for batch_size; a larger batch must fit, too. */
static dr_status check_size(const dr__exec *e, uint64_t n, dr_error *err)
{
    size_t bytes;
    if (e->unordered.on || (dr__mul_size(e->budget.sample_bytes, n, &bytes) && bytes <= e->budget.batch_bytes))
        return DR_OK;
    return dr__fail(err, DR_ERR_LIMIT,
                    "a batch of %llu samples of %zu bytes is pushed; the memory limit leaves %zu bytes for batches",
                    (unsigned long long)n, e->budget.sample_bytes, e->budget.batch_bytes);
}

/* pool lock */
static dr_status can_push(const dr__exec *e, dr_error *err)
{
    if (e->run.cancelled || !e->run.running)
        return dr__fail(err, DR_ERR_CANCELLED, "cancelled");
    if (e->run.failed)
        return dr__fail(err, e->run.error.status, "%s", e->run.error.text);
    if (e->order.complete)
        return dr__fail(err, DR_ERR_STATE, "the end of this epoch was pushed already");
    return DR_OK;
}

void dr__pushed_delivered(dr__exec *e, uint64_t n_slots)
{
    const uint64_t before = e->budget.batch_slots;
    if (n_slots < before || before == e->o.batch_size)
        return;
    uint64_t most = e->o.batch_size;
    for (uint64_t i = e->progress.oldest; i < e->progress.opened; i++)
        if (e->ring[i % DR__RING])
            most = DR_MAX(most, e->ring[i % DR__RING]->n_slots);
    for (const dr__push *p = e->pushed.head; p && most < before; p = p->next) /* the queue may be long */
        most = DR_MAX(most, p->n);
    e->budget.batch_slots = most;
}

/* pool lock */
static void enqueue(dr__exec *e, dr__push *p)
{
    dr__pushed *g = &e->pushed;
    p->first = e->order.n_local;
    p->position = g->positions;
    p->number = g->numbers++;
    g->positions += p->n;
    *g->tail = p;
    g->tail = &p->next;
    e->order.n_local += p->n;
    e->order.n_batches++;
    if (!e->unordered.on)
        e->budget.batch_slots = DR_MAX(e->budget.batch_slots, p->n);
    dr__cond_broadcast(&e->changed); /* with workers = 0 a consumer works itself */
    dr__pool_wake();
}

dr_status dr__pushed_push(dr__exec *e, const uint64_t *ids, const uint64_t *times, uint64_t n, dr_error *err)
{
    DR_TRY(check_ids(e, ids, n, err));
    DR_TRY(check_times(times, n, err));
    DR_TRY(check_size(e, n, err));
    DR_TRY(dr__occurrences_reserve(&e->pushed.times, n, err));
    dr__push *p = dr__alloc(sizeof *p + n * sizeof *p->samples);
    if (!p)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for a pushed batch");
    *p = (dr__push){ .refs = 1, .n = n };
    dr__pool_lock();
    dr_status status = can_push(e, err);
    if (status == DR_OK) {
        for (uint64_t i = 0; i < n; i++)
            p->samples[i] = (dr__sample_ref){
                .id = ids[i],
                .occurrence = times ? (uint32_t)times[i] : dr__occurrences_count(&e->pushed.times, ids[i]),
            };
        enqueue(e, p);
    }
    dr__pool_unlock();
    if (status != DR_OK)
        dr__free(p);
    return status;
}

dr_status dr__pushed_skip(dr__exec *e, const uint64_t *ids, uint64_t n, uint64_t batches, dr_error *err)
{
    if (n > 0)
        DR_TRY(check_ids(e, ids, n, err));
    DR_TRY(dr__occurrences_reserve(&e->pushed.times, n, err));
    dr__pool_lock();
    dr_status status = can_push(e, err);
    if (status == DR_OK) {
        e->pushed.positions += n;
        e->pushed.numbers += batches;
        e->order.first_batch += batches;
        for (uint64_t i = 0; i < n; i++)
            dr__occurrences_count(&e->pushed.times, ids[i]);
    }
    dr__pool_unlock();
    return status;
}

dr_status dr__pushed_end(dr__exec *e, dr_error *err)
{
    dr__pool_lock();
    dr_status status = can_push(e, err);
    if (status == DR_OK) {
        e->order.complete = true;
        dr__cond_broadcast(&e->changed);
        dr__pool_wake(); /* no worker needs to stay free for later samples */
    }
    dr__pool_unlock();
    if (status == DR_OK && e->unordered.on)
        dr__unordered_close(e);
    return status;
}
