/* pool.c: the threads of the process, and who works for whom.
 *
 * There is one lock for all scheduling.  A claim is at least some tens of microseconds of work, so that even many
 * threads seldom meet at it.  Threads are as many as the most demanding loader asks for; a loader has at most
 * `workers` claims under way, so several loaders share them in turn.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/exec.h"

enum {
    SAMPLES_FOR_PATIENCE =
        32, /* of a batch for each worker: then waiting for the last ones is a hundredth of the time */
    LAST_SAMPLES_NS = 20000000,
    HANDOVER_NS = 1000000,
    LOOK_AGAIN_NS = 50000,
};

typedef struct worker {
    pthread_t thread;
    dr__workbench *bench;
    const dr__exec *serves; /* pool lock; NULL: waits */
    bool leave;             /* pool lock */
} worker;

static struct {
    pthread_mutex_t lock;
    dr__cond work;   /* something may be claimed */
    dr__exec *execs; /* ring is walked from `turn` on */
    dr__exec *turn;  /* last served */
    worker *workers[DR__MAX_WORKERS];
    int n_workers;
    bool ready;
    bool look_again; /* a claim was put off for a moment */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void reset_in_child(void)
{
    /* The threads are gone and the lock may be held by one of them: begin anew.  What the parent had is left alone. */
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memset(&pool, 0, sizeof pool);
    pool.lock = fresh;
    dr__cond_init(&pool.work);
    pool.ready = true;
}

void dr__pool_lock(void)
{
    pthread_mutex_lock(&pool.lock);
}

void dr__pool_unlock(void)
{
    pthread_mutex_unlock(&pool.lock);
}

pthread_mutex_t *dr__pool_mutex(void)
{
    return &pool.lock;
}

void dr__pool_wake(void)
{
    dr__cond_broadcast(&pool.work);
}

static uint64_t slots_of(const dr__exec *e, uint64_t batch)
{
    return DR_MIN(e->o.batch_size, e->n_local - batch * e->o.batch_size);
}

/* What one batch takes: its stacked fields, and as much for the others as the largest batch so far needed. */
static size_t bytes_of_batch(const dr__exec *e)
{
    return e->batch_slots * e->sample_bytes + e->item_bytes;
}

/* Batches of other loaders that draw on the same budget: that of the process, unless a loader was given its own. */
static size_t taken_by_others(const dr__exec *e)
{
    size_t bytes = 0;
    for (const dr__exec *x = pool.execs; x && !e->o.memory_limit; x = x->next)
        if (x != e && !x->o.memory_limit)
            bytes += (x->opened - x->delivered) * bytes_of_batch(x);
    return bytes;
}

uint64_t dr__batches_ahead(const dr__exec *e)
{
    size_t one = bytes_of_batch(e), others = taken_by_others(e);
    others += e->lanes.bytes;
    size_t left = e->batch_budget > others ? e->batch_budget - others : 0;
    uint64_t afford = one ? left / one : UINT64_MAX;
    return DR_MAX(DR_MIN((uint64_t)e->prefetch, afford), 1);
}

/* Tiny samples are claimed by the handful, so that the lock is taken once for 64 KB of work. */
static uint64_t chunk(const dr__exec *e, uint64_t n_slots)
{
    uint64_t samples = atomic_load(&e->stats.samples);
    if (samples < 16)
        return 1;
    uint64_t mean = DR_MAX(atomic_load(&e->stats.bytes_read) / samples, e->sample_bytes);
    uint64_t most = DR_MAX(n_slots / (uint64_t)(2 * DR_MAX(e->workers, 1)), 1);
    return DR_MAX(DR_MIN(65536 / DR_MAX(mean, 1), most), 1);
}

static dr_batch *open_batch(dr__exec *e)
{
    const dr__push *given = e->given.head;
    const uint64_t n_slots = given ? given->n : slots_of(e, e->opened);
    dr_batch *batch = dr__batch_new(e, given ? given->number : e->first_batch + e->opened, n_slots);
    if (!batch) {
        dr_error err;
        dr__fail(&err, DR_ERR_NOMEM, "out of memory for a batch of %llu samples", (unsigned long long)n_slots);
        dr__exec_fail(e, &err);
        return NULL;
    }
    e->ring[e->opened++ % DR__RING] = batch;
    e->put_off_ns = 0;
    return batch;
}

/* A further batch is put off for a moment where that saves its memory: while a consumer waits for the batch before it,
 * of which the last samples are being made, and until a consumer that got a batch lets go of the one it had.  Then two
 * batches do where the consumer is the faster side, instead of three.  Not with so many workers that many would have
 * nothing to do, and not again in an epoch where it was in vain: a slow sample, or a consumer that keeps its batches.
 */
static bool put_off(dr__exec *e)
{
    const bool handing_over = e->opened == e->delivered;
    if (e->impatient || e->workers < 1 || e->o.batch_size < SAMPLES_FOR_PATIENCE * (uint64_t)e->workers ||
        (!handing_over && !e->waiting) || dr__bufpool_bytes(e->buffers) < 2 * e->o.batch_size * e->sample_bytes ||
        dr__bufpool_has_idle(e->buffers, e->o.batch_size * e->largest_bytes))
        return false;
    const uint64_t now = dr__now_ns();
    e->put_off_ns = e->put_off_ns ? e->put_off_ns : now;
    e->impatient = now - e->put_off_ns > (handing_over ? HANDOVER_NS : LAST_SAMPLES_NS);
    pool.look_again |= !e->impatient;
    return !e->impatient;
}

/* The batch opened last, while some of it is not yet claimed. */
static dr_batch *batch_to_claim(const dr__exec *e)
{
    dr_batch *b = e->opened ? e->ring[(e->opened - 1) % DR__RING] : NULL;
    return b && b->used < b->n_slots ? b : NULL;
}

static bool claim_of_batch(dr__exec *e, dr__claim *c)
{
    dr_batch *b = batch_to_claim(e);
    if (!b && (e->opened - e->oldest >= dr__batches_ahead(e) || put_off(e) || !(b = open_batch(e))))
        return false;
    c->batch = b;
    c->slot = b->used;
    c->n = DR_MIN(chunk(e, b->n_slots), b->n_slots - b->used);
    b->used += c->n;
    return true;
}

static bool claim_in_window(dr__exec *e, dr__claim *c)
{
    const dr__push *given = e->given.head;
    uint64_t end = DR_MIN(dr__any_window(e), given ? given->first + given->n : e->n_local);
    if (e->claimed >= end)
        return false;
    c->n = DR_MIN(chunk(e, e->o.batch_size), end - e->claimed);
    return true;
}

static bool claim_fast(dr__exec *e, dr__claim *c)
{
    if (e->claimed == e->n_local || !(e->fills_any ? claim_in_window(e, c) : claim_of_batch(e, c)))
        return false;
    if (e->o.given_order)
        c->push = dr__given_claim(&e->given, c->first, c->n);
    e->claimed += c->n;
    return true;
}

bool dr__claim_is_open(const dr__exec *e)
{
    if (e->claimed == e->n_local)
        return false;
    if (e->fills_any)
        return e->claimed < dr__any_window(e);
    return batch_to_claim(e) || e->opened - e->oldest < dr__batches_ahead(e);
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
    if (e->complete && e->claimed == e->n_local)
        return false;
    if (e->fills_any)
        return e->delivered_samples < e->worked_below && has_ready(e);
    const dr_batch *b = e->ring[e->oldest % DR__RING];
    return e->oldest < e->opened && b && b->ready;
}

bool dr__claim_next(dr__exec *e, dr__claim *c)
{
    if (!e->running || e->failed || e->cancelled || e->active >= DR_MAX(e->workers, 1))
        return false;
    *c = (dr__claim){ .first = e->claimed, .slow = dr__lane_take(e, true) };
    if (!c->slow && !claim_fast(e, c) && !(c->slow = dr__lane_take(e, false)))
        return false;
    e->active++;
    return true;
}

void dr__claim_over(dr__exec *e, dr__claim *claim)
{
    dr__push_unref(&claim->push);
    e->active--;
    if (!e->running || e->workers == 0) /* who stops it waits for this, and a caller that is to work itself */
        dr__cond_broadcast(&e->changed);
}

int dr__pool_busy_since(const dr__exec *e, uint64_t ns)
{
    int n = 0;
    for (int i = 0; i < pool.n_workers; i++) {
        const uint64_t began = atomic_load(&pool.workers[i]->bench->began_ns);
        n += pool.workers[i]->serves == e && began && began < ns;
    }
    return n;
}

/* pool lock: a claim of any loader, the one after the last served first. */
static dr__exec *find_work(dr__claim *c)
{
    dr__exec *first = pool.turn && pool.turn->next ? pool.turn->next : pool.execs;
    pool.look_again = false;
    dr__exec *e = first;
    while (e) {
        if (e->workers > 0 && dr__claim_next(e, c)) {
            pool.turn = e;
            return e;
        }
        e = e->next ? e->next : pool.execs;
        if (e == first)
            return NULL;
    }
    return NULL;
}

static void *work(void *arg)
{
    worker *w = arg;
    const dr__exec *last = NULL; /* only compared: it may be gone */
    dr__pool_lock();
    while (!w->leave) {
        dr__claim claim;
        dr__exec *e = find_work(&claim);
        if (last && e != last)
            dr__cond_signal(&pool.work); /* another thread may take the place that this one gave up */
        last = w->serves = e;
        if (!e) {
            dr__cond_wait(&pool.work, &pool.lock, pool.look_again ? dr__now_ns() + LOOK_AGAIN_NS : UINT64_MAX);
            continue;
        }
        dr__pool_unlock();
        dr__claim_work(e, &claim, w->bench);
        dr__pool_lock();
        dr__claim_over(e, &claim);
    }
    dr__pool_wake();
    dr__pool_unlock();
    return NULL;
}

/* pool lock */
static int wanted_workers(void)
{
    int most = 0;
    for (dr__exec *e = pool.execs; e; e = e->next)
        most = DR_MAX(most, e->workers);
    return DR_MIN(most, DR__MAX_WORKERS);
}

static void worker_free(worker *w)
{
    dr__workbench_free(&w->bench);
    dr__free(w);
}

/* pool lock: one more thread. */
static dr_status add_worker(dr_error *err)
{
    worker *w = dr__alloc_zero(1, sizeof *w);
    if (w)
        w->bench = dr__workbench_new();
    if (!w || !w->bench) {
        dr__free(w);
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for a worker");
    }
    w->bench->worker = pool.n_workers + 1;
    if (!dr__thread_start(&w->thread, "drapps-worker", work, w)) {
        worker_free(w);
        return dr__fail(err, DR_ERR_LIMIT, "cannot start worker thread %d", pool.n_workers + 1);
    }
    pool.workers[pool.n_workers++] = w;
    return DR_OK;
}

dr_status dr__pool_resize(dr_error *err)
{
    worker *leaving[DR__MAX_WORKERS];
    int n_leaving = 0;
    dr_status status = DR_OK;
    dr__pool_lock();
    int want = wanted_workers();
    while (status == DR_OK && pool.n_workers < want)
        status = add_worker(err);
    if (status != DR_OK && pool.n_workers > 0)
        status = DR_OK; /* fewer threads than asked for still do the work */
    while (pool.n_workers > want) {
        worker *w = pool.workers[--pool.n_workers];
        w->leave = true;
        leaving[n_leaving++] = w;
    }
    dr__pool_wake();
    dr__pool_unlock();
    for (int i = 0; i < n_leaving; i++) {
        pthread_join(leaving[i]->thread, NULL);
        worker_free(leaving[i]);
    }
    return status;
}

static void prepare(void)
{
    if (pool.ready)
        return;
    dr__cond_init(&pool.work);
    dr__fork_in_child(reset_in_child);
    pool.ready = true;
}

dr_status dr__pool_add(dr__exec *e, dr_error *err)
{
    dr__pool_lock();
    prepare();
    bool there = false;
    for (dr__exec *x = pool.execs; x; x = x->next)
        there |= x == e;
    if (!there) {
        e->next = pool.execs;
        pool.execs = e;
    }
    dr__pool_unlock();
    return dr__pool_resize(err);
}

void dr__pool_remove(dr__exec *e)
{
    dr__pool_lock();
    for (dr__exec **at = &pool.execs; *at; at = &(*at)->next)
        if (*at == e) {
            *at = e->next;
            break;
        }
    if (pool.turn == e)
        pool.turn = NULL;
    dr__pool_unlock();
    dr__pool_resize(NULL);
}
