/* pool.c: the threads of the process, and who works for whom.
 *
 * There is one lock for all scheduling.  A claim is at least some tens of microseconds of work, so that even many
 * threads seldom meet at it.  Threads are as many as the most demanding loader asks for; a loader has at most
 * `workers` claims in flight, so several loaders share them in turn.
 *
 * Workers and readers are teams of their own, and so are those for loaders of priority -1: a thread that stands back
 * may not be allowed to step forward again, and while it does it would keep a loader of higher priority waiting.  So a
 * loader whose priority changes gets other threads, and no thread changes its own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/exec.h"

enum { FAVOUR = 4 }; /* claims in a row for a loader of priority 1 */

enum { WORK, WORK_LOW, FETCH, FETCH_LOW, N_TEAMS };

typedef struct team team;

typedef struct worker {
    struct worker *next; /* of those that leave */
    team *team;
    pthread_t thread;
    dr__workbench *bench;
    uint64_t cpu_ns;        /* the thread's CPU time after its last claim; its own */
    const dr__exec *serves; /* pool lock, as the rest; NULL: waits */
    bool leave;
    bool gone; /* touches nothing any more */
} worker;

/* pool lock */
struct team {
    bool reads;    /* readers */
    bool low;      /* for loaders of priority -1 */
    dr__cond work; /* something may be claimed */
    worker *workers[DR__MAX_WORKERS];
    int n;
    dr__exec *turn;    /* last served */
    int row;           /* how often in a row */
    uint64_t watch_ns; /* when one of them looks again for all; UINT64_MAX: none does */
};

static struct {
    pthread_mutex_t lock;
    dr__exec *execs; /* ring is walked from a team's `turn` on */
    team teams[N_TEAMS];
    worker *leaving;
    uint64_t look_ns; /* a claim was put off until then */
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
    /* The threads are gone and the lock may be held by one of them: begin anew.  What the parent had is left alone. */
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

void dr__pool_look_at(uint64_t ns)
{
    pool.look_ns = DR_MIN(pool.look_ns, ns);
}

/* pool lock */
static bool is_busy(const worker *w, const dr__exec *e, uint64_t since_ns)
{
    if (w->serves != e || w->team->reads)
        return false;
    const uint64_t began = atomic_load(&w->bench->began_ns);
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

/* pool lock: n is raised where the thread is at a sample. */
static void note_running(const worker *w, const dr__exec *e, dr__at *out, size_t cap, size_t *n)
{
    const uint64_t since = w->serves == e ? atomic_load(&w->bench->at_ns) : 0;
    if (!since || *n == cap)
        return;
    out[(*n)++] = (dr__at){ .id = atomic_load(&w->bench->at_id),
                            .since_ns = since,
                            .worker = w->team->reads ? -w->bench->worker : w->bench->worker };
}

size_t dr__pool_running(const dr__exec *e, dr__at *out, size_t cap)
{
    size_t n = 0;
    for (const team *t = pool.teams; t < pool.teams + N_TEAMS; t++)
        for (int i = 0; i < t->n; i++)
            note_running(t->workers[i], e, out, cap, &n);
    for (const worker *w = pool.leaving; w; w = w->next)
        if (!w->gone)
            note_running(w, e, out, cap, &n);
    return n;
}

/* --- finding work; pool lock --- */

/* How many threads of a team a loader asks for. */
static int asks_for(const dr__exec *e, const team *t)
{
    if ((e->knobs.priority < 0) != t->low)
        return 0;
    return t->reads ? e->knobs.readers : e->knobs.workers;
}

static bool take_claim(team *t, dr__exec *e, dr__claim *c)
{
    if (!asks_for(e, t))
        return false;
    if (e->knobs.ceiling.cpus > 0) {
        const uint64_t now = dr__now_ns(), opens = dr__ceiling_opens(&e->knobs.ceiling, now);
        if (opens > now) {
            dr__pool_look_at(opens);
            return false;
        }
    }
    if (!(t->reads ? dr__read_ahead_claim(e, c) : dr__claim_next(e, c)))
        return false;
    c->reserved_ns = e->knobs.ceiling.cpus > 0 ? dr__ceiling_take(&e->knobs.ceiling) : 0;
    return true;
}

/* Who is asked first: the one after the last served, or this one again, if it is favoured. */
static dr__exec *first_in_turn(const team *t)
{
    if (t->turn && t->turn->knobs.priority > 0 && t->row < FAVOUR)
        return t->turn;
    return t->turn && t->turn->next ? t->turn->next : pool.execs;
}

/* A claim of any loader. */
static dr__exec *find_work(team *t, dr__claim *c)
{
    dr__exec *first = first_in_turn(t), *e = first;
    pool.look_ns = UINT64_MAX;
    while (e) {
        if (take_claim(t, e, c)) {
            t->row = e == t->turn ? t->row + 1 : 1;
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

/* pool lock: waits for work.  Where a claim was put off, one thread of the team looks again for all. */
static void rest(team *t)
{
    const uint64_t until = pool.look_ns;
    const bool watches = until < t->watch_ns;
    if (watches)
        t->watch_ns = until;
    dr__cond_wait(&t->work, &pool.lock, watches ? until : UINT64_MAX);
    if (watches)
        t->watch_ns = UINT64_MAX;
}

/* pool lock, given up meanwhile */
static void work_off(worker *w, dr__exec *e, dr__claim *claim)
{
    const bool reads = w->team->reads;
    dr__pool_unlock();
    if (reads)
        dr__read_ahead_work(e, claim, w->bench);
    else
        dr__claim_work(e, claim, w->bench);
    const uint64_t cpu = dr__thread_cpu_ns(), used = cpu - w->cpu_ns;
    w->cpu_ns = cpu;
    atomic_fetch_add(&e->stats.cpu_ns, used);
    dr__pool_lock();
    if (e->knobs.ceiling.cpus > 0)
        dr__ceiling_settle(&e->knobs.ceiling, claim->reserved_ns, used);
    if (reads)
        dr__read_ahead_done(e, claim);
    else
        dr__claim_over(e, claim);
}

static void *serve(void *arg)
{
    worker *w = arg;
    team *t = w->team;
    const dr__exec *last = NULL; /* only compared: it may be gone */
    bool rested = false;
    if (t->low)
        dr__thread_stand_back();
    dr__pool_lock();
    while (!w->leave) {
        dr__claim claim;
        dr__exec *e = find_work(t, &claim);
        if ((last && e != last) || (e && rested))
            dr__cond_signal(&t->work); /* another thread may find work, too, or take the place that this one gave up */
        last = w->serves = e;
        rested = !e;
        if (e)
            work_off(w, e, &claim);
        else
            rest(t);
    }
    dr__workbench *bench = w->bench;
    w->serves = NULL;
    w->gone = true;
    dr__pool_wake();
    dr__pool_unlock();
    dr__workbench_free(&bench);
    return NULL;
}

/* pool lock: the lowest number, from 1, that no thread of the team has. */
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

/* pool lock: a thread that was to leave and has not yet. */
static worker *call_back(const team *t)
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
    if (!dr__thread_start(&w->thread, t->reads ? "drapps-reader" : "drapps-worker", serve, w)) {
        dr__workbench_free(&w->bench);
        dr__free(w);
        return dr__fail(err, DR_ERR_LIMIT, "cannot start worker thread %d", t->n + 1);
    }
    *out = w;
    return DR_OK;
}

/* pool lock: as many as the most demanding loader asks for. */
static int wanted(const team *t)
{
    int want = 0;
    for (const dr__exec *e = pool.execs; e; e = e->next)
        want = DR_MAX(want, asks_for(e, t));
    return want;
}

/* pool lock: fewer threads than wanted still do the work, and where there are no readers workers read. */
static dr_status grow(team *t, dr_error *err)
{
    const int want = wanted(t);
    dr_status status = DR_OK;
    while (t->n < want && status == DR_OK) {
        worker *w = call_back(t);
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
    for (const int want = wanted(t); t->n > want;) {
        worker *w = t->workers[--t->n];
        w->leave = true;
        w->next = pool.leaving;
        pool.leaving = w;
        dr__cond_broadcast(&t->work);
    }
}

/* pool lock: takes threads off the list that can be joined without waiting for a sample: those that are gone, and all
 * once there is nobody to work for. */
static worker *take_leavers(void)
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
    for (int i = 0; i < N_TEAMS && status == DR_OK; i++) /* not before others are there */
        shrink(&pool.teams[i]);
    worker *leavers = take_leavers();
    dr__pool_wake();
    dr__pool_unlock();
    while (leavers) {
        worker *w = leavers;
        leavers = w->next;
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
