/* pool.c: the threads of the process, shared by all loaders.
 *
 * One lock covers all scheduling.  A claim is at least some tens of microseconds of work, so there is little contention
 * even with many threads.  A team has as many threads as its most demanding loader asks for.  A loader has at most
 * `workers` claims in flight, so several loaders take turns.
 *
 * Workers and readers are separate teams.  Loaders of priority -1 have teams of their own: an unprivileged thread
 * cannot undo nice(), so a low-priority thread could not serve other loaders at full priority later.  A loader whose
 * priority changes is served by other threads; no thread changes its own priority.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/exec.h"
#include "source/transfer.h"

enum { MAX_CLAIMS_IN_A_ROW = 4 }; /* for a loader of priority 1 */

enum { WORK, WORK_LOW, FETCH, FETCH_LOW, N_TEAMS };

typedef struct team team;

typedef struct worker {
    struct worker *next; /* in pool.leaving */
    team *team;
    pthread_t thread;
    dr__workbench *bench;
    uint64_t cpu_ns;        /* CPU time of the thread after its last claim; used by the thread alone */
    const dr__exec *serves; /* NULL: it waits; pool lock, as below */
    bool leave;             /* it is to end after its claim */
    bool gone;              /* it has ended and can be joined without waiting */
} worker;

/* pool lock */
struct team {
    bool reads;    /* readers */
    bool low;      /* for loaders of priority -1 */
    dr__cond work; /* something may be claimed */
    worker *workers[DR__MAX_WORKERS];
    int n;
    dr__exec *turn;    /* the loader served last */
    int in_a_row;      /* how many claims in a row it got */
    uint64_t watch_ns; /* when one thread looks for deferred claims again; UINT64_MAX: none does */
};

static struct {
    pthread_mutex_t lock;
    dr__exec *execs; /* a team goes round this list, starting after its `turn` */
    team teams[N_TEAMS];
    worker *leaving;
    uint64_t recheck_ns; /* earliest time that a claim was deferred to; UINT64_MAX: none */
    bool ready;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void set_up_teams(void)
{
    for (int i = 0; i < N_TEAMS; i++) {
        pool.teams[i] = (team){ .reads = i >= FETCH, .low = i == WORK_LOW || i == FETCH_LOW, .watch_ns = UINT64_MAX };
        dr__cond_init(&pool.teams[i].work);
    }
    pool.ready = true;
}

static void reset_in_child(void)
{
    /* The threads do not exist in the child, and one of them may have held the lock: start afresh.  Memory of the
     * parent's pool is left alone. */
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memset(&pool, 0, sizeof pool);
    pool.lock = fresh;
    set_up_teams();
}

/* pool lock */
static void prepare(void)
{
    if (pool.ready)
        return;
    set_up_teams();
    dr__fork_in_child(reset_in_child);
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

const dr__exec *dr__pool_execs(void)
{
    return pool.execs;
}

void dr__pool_wake(void)
{
    for (int i = 0; i < N_TEAMS; i++)
        if (pool.teams[i].n > 0)
            dr__cond_broadcast(&pool.teams[i].work);
}

void dr__pool_wake_one(const dr__exec *e, bool reader)
{
    dr__cond_signal(&pool.teams[(reader ? FETCH : WORK) + (e->knobs.priority < 0)].work);
}

void dr__pool_wake_at(uint64_t ns)
{
    pool.recheck_ns = DR_MIN(pool.recheck_ns, ns);
}

/* pool lock */
static bool is_busy(const worker *w, const dr__exec *e, uint64_t since_ns)
{
    if (w->serves != e || w->team->reads)
        return false;
    const uint64_t began = atomic_load(&w->bench->started_ns);
    return began && began < since_ns;
}

int dr__pool_busy_since(const dr__exec *e, uint64_t ns)
{
    int n = 0;
    for (const team *t = pool.teams; t < pool.teams + FETCH; t++)
        for (int i = 0; i < t->n; i++)
            n += is_busy(t->workers[i], e, ns);
    for (const worker *w = pool.leaving; w; w = w->next)
        n += is_busy(w, e, ns);
    return n;
}

/* pool lock: appends the sample of a thread, if it is at one. */
static void add_running(const worker *w, const dr__exec *e, dr__running_sample *out, size_t cap, size_t *n)
{
    const uint64_t since = w->serves == e ? atomic_load(&w->bench->running_since_ns) : 0;
    if (!since || *n == cap)
        return;
    out[(*n)++] = (dr__running_sample){ .id = atomic_load(&w->bench->running_id),
                                        .since_ns = since,
                                        .worker = w->team->reads ? -w->bench->worker : w->bench->worker };
}

size_t dr__pool_running(const dr__exec *e, dr__running_sample *out, size_t cap)
{
    size_t n = 0;
    for (const team *t = pool.teams; t < pool.teams + N_TEAMS; t++)
        for (int i = 0; i < t->n; i++)
            add_running(t->workers[i], e, out, cap, &n);
    for (const worker *w = pool.leaving; w; w = w->next)
        if (!w->gone)
            add_running(w, e, out, cap, &n);
    return n;
}

/* --- finding work; pool lock --- */

/* How many threads of a team a loader wants. */
static int threads_for(const dr__exec *e, const team *t)
{
    if ((e->knobs.priority < 0) != t->low)
        return 0;
    return t->reads ? e->knobs.readers : e->knobs.workers;
}

static bool take_claim(team *t, dr__exec *e, dr__claim *c)
{
    if (!threads_for(e, t))
        return false;
    if (e->knobs.ceiling.cpus > 0) {
        const uint64_t now = dr__now_ns(), opens = dr__ceiling_opens(&e->knobs.ceiling, now);
        if (opens > now) {
            dr__pool_wake_at(opens);
            return false;
        }
    }
    if (!(t->reads ? dr__read_ahead_claim(e, c) : dr__claim_next(e, c)))
        return false;
    c->reserved_ns = e->knobs.ceiling.cpus > 0 ? dr__ceiling_take(&e->knobs.ceiling) : 0;
    return true;
}

/* The loader to try first: the one after the last served, or the last served again if it has priority 1. */
static dr__exec *first_candidate(const team *t)
{
    if (t->turn && t->turn->knobs.priority > 0 && t->in_a_row < MAX_CLAIMS_IN_A_ROW)
        return t->turn;
    return t->turn && t->turn->next ? t->turn->next : pool.execs;
}

/* Claims work of any loader; NULL: there is none now. */
static dr__exec *find_work(team *t, dr__claim *c)
{
    dr__exec *first = first_candidate(t), *e = first;
    pool.recheck_ns = UINT64_MAX;
    while (e) {
        if (take_claim(t, e, c)) {
            t->in_a_row = e == t->turn ? t->in_a_row + 1 : 1;
            t->turn = e;
            return e;
        }
        e = e->next ? e->next : pool.execs;
        if (e == first)
            return NULL;
    }
    return NULL;
}

/* --- threads --- */

/* pool lock: waits for work.  If a claim was deferred, one thread of the team wakes at that time. */
static void wait_for_work(team *t)
{
    const uint64_t until = pool.recheck_ns;
    const bool watches = until < t->watch_ns;
    if (watches)
        t->watch_ns = until;
    dr__cond_wait(&t->work, &pool.lock, watches ? until : UINT64_MAX);
    if (watches)
        t->watch_ns = UINT64_MAX;
}

/* pool lock, released meanwhile */
static void run_claim(worker *w, dr__exec *e, dr__claim *claim)
{
    const bool reads = w->team->reads;
    dr__pool_unlock();
    dr__transfer_watch(&e->run.abandoned);
    if (reads)
        dr__read_ahead_work(e, claim, w->bench);
    else
        dr__claim_work(e, claim, w->bench);
    dr__transfer_watch(NULL);
    const uint64_t cpu = dr__thread_cpu_ns(), used = cpu - w->cpu_ns;
    w->cpu_ns = cpu;
    atomic_fetch_add(&e->stats.cpu_ns, used);
    dr__pool_lock();
    if (e->knobs.ceiling.cpus > 0)
        dr__ceiling_settle(&e->knobs.ceiling, claim->reserved_ns, used);
    if (reads)
        dr__read_ahead_done(e, claim);
    else
        dr__claim_done(e, claim);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    team *t = w->team;
    const dr__exec *last = NULL; /* only compared: the loader may be closed */
    bool had_waited = false;
    if (t->low)
        dr__thread_stand_back();
    dr__pool_lock();
    while (!w->leave) {
        dr__claim claim;
        dr__exec *e = find_work(t, &claim);
        if ((last && e != last) || (e && had_waited))
            dr__cond_signal(&t->work); /* more work may be there, or the loader left may take another thread */
        last = w->serves = e;
        had_waited = !e;
        if (e)
            run_claim(w, e, &claim);
        else
            wait_for_work(t);
    }
    dr__workbench *bench = w->bench;
    w->serves = NULL;
    w->gone = true;
    dr__pool_wake();
    dr__pool_unlock();
    dr__workbench_free(&bench);
    return NULL;
}

/* pool lock: the lowest worker number, from 1, that is free in the team. */
static int free_number(const team *t)
{
    for (int number = 1;; number++) {
        bool taken = false;
        for (int i = 0; i < t->n; i++)
            taken |= t->workers[i]->bench->worker == number;
        if (!taken)
            return number;
    }
}

/* pool lock: takes back a thread that was told to leave and has not left yet; NULL: there is none. */
static worker *recall_worker(const team *t)
{
    for (worker **at = &pool.leaving; *at; at = &(*at)->next)
        if ((*at)->team == t && !(*at)->gone) {
            worker *w = *at;
            *at = w->next;
            w->leave = false;
            return w;
        }
    return NULL;
}

/* pool lock */
static dr_status start_worker(team *t, worker **out, dr_error *err)
{
    worker *w = dr__alloc_zero(1, sizeof *w);
    if (w)
        w->bench = dr__workbench_new();
    if (!w || !w->bench) {
        dr__free(w);
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for a worker");
    }
    w->team = t;
    w->bench->worker = free_number(t);
    if (!dr__thread_start(&w->thread, t->reads ? "drapps-reader" : "drapps-worker", worker_main, w)) {
        dr__workbench_free(&w->bench);
        dr__free(w);
        return dr__fail(err, DR_ERR_LIMIT, "cannot start worker thread %d", t->n + 1);
    }
    *out = w;
    return DR_OK;
}

/* pool lock: the number of threads that the most demanding loader wants. */
static int max_threads_wanted(const team *t)
{
    int want = 0;
    for (const dr__exec *e = pool.execs; e; e = e->next)
        want = DR_MAX(want, threads_for(e, t));
    return want;
}

/* pool lock: starts missing threads.  Fails only if the team has no thread at all; without readers, workers read. */
static dr_status grow(team *t, dr_error *err)
{
    const int want = max_threads_wanted(t);
    dr_status status = DR_OK;
    while (t->n < want && status == DR_OK) {
        worker *w = recall_worker(t);
        if (!w)
            status = start_worker(t, &w, err);
        if (w)
            t->workers[t->n++] = w;
    }
    return t->n > 0 || t->reads ? DR_OK : status;
}

/* pool lock */
static void shrink(team *t)
{
    for (const int want = max_threads_wanted(t); t->n > want;) {
        worker *w = t->workers[--t->n];
        w->leave = true;
        w->next = pool.leaving;
        pool.leaving = w;
        dr__cond_broadcast(&t->work);
    }
}

/* pool lock: takes the threads off pool.leaving that can be joined without waiting for a sample: those that have ended,
 * or all if there is no loader. */
static worker *take_joinable(void)
{
    worker *list = NULL;
    for (worker **at = &pool.leaving; *at;) {
        worker *w = *at;
        if (pool.execs && !w->gone) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = list;
        list = w;
    }
    return list;
}

dr_status dr__pool_resize(dr_error *err)
{
    dr_status status = DR_OK;
    dr__pool_lock();
    prepare();
    for (int i = 0; i < N_TEAMS && status == DR_OK; i++)
        status = grow(&pool.teams[i], err);
    for (int i = 0; i < N_TEAMS && status == DR_OK; i++) /* only after other teams have grown */
        shrink(&pool.teams[i]);
    worker *finished = take_joinable();
    dr__pool_wake();
    dr__pool_unlock();
    while (finished) {
        worker *w = finished;
        finished = w->next;
        pthread_join(w->thread, NULL);
        dr__free(w);
    }
    return status;
}

/* --- loaders --- */

dr_status dr__pool_add(dr__exec *e, dr_error *err)
{
    dr__pool_lock();
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
    for (team *t = pool.teams; t < pool.teams + N_TEAMS; t++)
        if (t->turn == e)
            t->turn = NULL;
    dr__pool_unlock();
    dr__pool_resize(NULL);
}
