/* monitor.c: the monitor's thread, the ring of snapshots, and the subscribers.
 *
 * The thread reads the probes without a lock, then takes `lock` to put the snapshot into the ring and wake waiting
 * threads, then calls the subscribers, again without a lock.  Ticks are due at fixed times; ticks that were missed
 * because the machine was busy are skipped.
 */
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "monitor/pipeline_facts.h"
#include "monitor/sampler.h"

enum { MIN_INTERVAL_MS = 10, MAX_INTERVAL_MS = 1000, MAX_HISTORY = 100000 };

struct dr_monitor {
    atomic_int refs;
    unsigned generation; /* fork generation of the process that opened it */
    dr__sampler sampler; /* used by the thread alone; its hooks and own_cpu have their own locks */
    dr_snapshot scratch; /* used by the thread alone */
    dr__hooks subscribers;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* the fields below */
    dr__cond changed;
    dr_snapshot *ring;
    size_t ring_cap;
    uint64_t n_made; /* snapshots so far: the newest is number n_made */
    int interval_ms;
    bool stop;
};

void dr_monitor_defaults(dr_monitor_options *options)
{
    *options = (dr_monitor_options){ .size = sizeof *options, .interval_ms = 100, .history = 300, .root = "" };
}

/* --- the thread --- */

static void publish_snapshot(dr_monitor *m)
{
    pthread_mutex_lock(&m->lock);
    m->ring[m->n_made++ % m->ring_cap] = m->scratch;
    dr__cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void call_subscribers(dr_monitor *m)
{
    dr__hook hooks[DR__MAX_HOOKS];
    int n = dr__hooks_begin(&m->subscribers, hooks);
    for (int i = 0; i < n; i++)
        if (dr__hooks_has(&m->subscribers, hooks[i].token))
            hooks[i].tick(hooks[i].user, &m->scratch);
    dr__hooks_end(&m->subscribers);
}

/* Sleeps until the tick after the one that was due at *due_ns; false: the thread is to stop.  A changed interval
 * applies at once. */
static bool wait_for_tick(dr_monitor *m, uint64_t *due_ns)
{
    uint64_t next_ns = 0;
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        next_ns = *due_ns + (uint64_t)m->interval_ms * 1000000u;
        if (dr__now_ns() >= next_ns)
            break;
        dr__cond_wait(&m->changed, &m->lock, next_ns);
    }
    uint64_t interval_ns = (uint64_t)m->interval_ms * 1000000u, now_ns = dr__now_ns();
    bool go_on = !m->stop;
    pthread_mutex_unlock(&m->lock);
    *due_ns = now_ns - next_ns > interval_ns ? now_ns : next_ns;
    return go_on;
}

/* The first snapshot opens the probes, which takes milliseconds: done here, not by the caller of dr_monitor_open. */
static void *run(void *arg)
{
    dr_monitor *m = arg;
    dr__sampler_tick(&m->sampler, dr__now_ns(), &m->scratch);
    publish_snapshot(m);
    uint64_t due_ns = m->scratch.time_ns;
    while (wait_for_tick(m, &due_ns)) {
        dr__sampler_tick(&m->sampler, dr__now_ns(), &m->scratch);
        publish_snapshot(m);
        call_subscribers(m);
    }
    return NULL;
}

/* --- opening and closing --- */

static dr_status check_interval(int ms, dr_error *err)
{
    if (ms < MIN_INTERVAL_MS || ms > MAX_INTERVAL_MS)
        return dr__fail(err, DR_ERR_ARG, "monitor: interval_ms must be %d to %d, got %d", MIN_INTERVAL_MS,
                        MAX_INTERVAL_MS, ms);
    return DR_OK;
}

static dr_status check_options(const dr_monitor_options *o, dr_error *err)
{
    if (o->size != sizeof *o)
        return dr__fail(err, DR_ERR_ARG, "dr_monitor_options.size must be %zu, got %zu: call dr_monitor_defaults first",
                        sizeof *o, o->size);
    if (o->history < 1 || o->history > MAX_HISTORY)
        return dr__fail(err, DR_ERR_ARG, "monitor: history must be 1 to %d, got %d", MAX_HISTORY, o->history);
    if (!o->root)
        return dr__fail(err, DR_ERR_ARG, "monitor: root must be a path or \"\" (this machine), got NULL");
    return check_interval(o->interval_ms, err);
}

static void free_monitor(dr_monitor *m)
{
    dr__sampler_close(&m->sampler);
    dr__hooks_destroy(&m->subscribers);
    dr__cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    dr__free(m->ring);
    dr__free(m);
}

static dr_status start(dr_monitor *m, const dr_monitor_options *o, dr_error *err)
{
    m->ring_cap = (size_t)o->history;
    m->interval_ms = o->interval_ms;
    m->ring = dr__alloc_zero(m->ring_cap, sizeof *m->ring);
    DR_TRY(dr__sampler_open(&m->sampler, o->root, err));
    if (!m->ring)
        return dr__fail(err, DR_ERR_NOMEM, "monitor: no memory for %zu snapshots", m->ring_cap);
    m->started = dr__thread_start(&m->thread, "dr-monitor", run, m);
    return m->started ? DR_OK : dr__fail_errno(err, DR_ERR_NOMEM, "monitor: no thread could be started");
}

dr_status dr__monitor_begin(const dr_monitor_options *options, dr_monitor **out, dr_error *err)
{
    dr_monitor_options defaults;
    dr_monitor_defaults(&defaults);
    const dr_monitor_options *o = options ? options : &defaults;
    *out = NULL;
    DR_TRY(check_options(o, err));
    dr_monitor *m = dr__alloc_zero(1, sizeof *m);
    if (!m)
        return dr__fail(err, DR_ERR_NOMEM, "monitor: no memory for %zu bytes", sizeof *m);
    atomic_init(&m->refs, 1);
    m->generation = dr__fork_generation();
    dr__hooks_init(&m->subscribers);
    pthread_mutex_init(&m->lock, NULL);
    dr__cond_init(&m->changed);
    dr_status status = start(m, o, err);
    if (status == DR_OK)
        *out = m;
    else
        free_monitor(m);
    return status;
}

static void wait_for_first(dr_monitor *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->n_made)
        dr__cond_wait(&m->changed, &m->lock, UINT64_MAX);
    pthread_mutex_unlock(&m->lock);
}

dr_status dr_monitor_open(const dr_monitor_options *options, dr_monitor **out, dr_error *err)
{
    DR_TRY(dr__monitor_begin(options, out, err));
    wait_for_first(*out);
    return DR_OK;
}

static bool is_ours(const dr_monitor *m)
{
    return m->generation == dr__fork_generation();
}

dr_monitor *dr_monitor_ref(dr_monitor *m)
{
    atomic_fetch_add(&m->refs, 1);
    return m;
}

void dr_monitor_close(dr_monitor *m)
{
    if (!is_ours(m))
        return;
    pthread_mutex_lock(&m->lock);
    bool join = m->started;
    m->started = false; /* a second call must not join the thread again */
    m->stop = true;
    dr__cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (join)
        pthread_join(m->thread, NULL);
}

void dr_monitor_unref(dr_monitor **monitor)
{
    dr_monitor *m = *monitor;
    *monitor = NULL;
    if (!m || atomic_fetch_sub(&m->refs, 1) > 1)
        return;
    dr_monitor_close(m);
    if (is_ours(m)) /* in a forked child the locks may be held by a thread that does not exist there */
        free_monitor(m);
}

/* --- reading --- */

static const dr_snapshot *snapshot_at(const dr_monitor *m, uint64_t number)
{
    return &m->ring[(number - 1) % m->ring_cap];
}

/* The oldest number above `after` that is still in the ring. */
static uint64_t first_after(const dr_monitor *m, uint64_t after)
{
    uint64_t oldest = m->n_made > m->ring_cap ? m->n_made - m->ring_cap + 1 : 1;
    return after < oldest ? oldest : after + 1;
}

dr_status dr_monitor_latest(dr_monitor *m, dr_snapshot *out)
{
    if (!is_ours(m))
        return DR_ERR_FORKED;
    wait_for_first(m);
    pthread_mutex_lock(&m->lock);
    *out = *snapshot_at(m, m->n_made);
    pthread_mutex_unlock(&m->lock);
    return DR_OK;
}

dr_status dr_monitor_wait(dr_monitor *m, uint64_t after, int timeout_ms, dr_snapshot *out)
{
    if (!is_ours(m))
        return DR_ERR_FORKED;
    uint64_t deadline_ns = dr__now_ns() + (uint64_t)DR_MAX(timeout_ms, 0) * 1000000u;
    pthread_mutex_lock(&m->lock);
    while (m->n_made <= after && !m->stop && dr__cond_wait(&m->changed, &m->lock, deadline_ns))
        ;
    dr_status status = m->n_made > after ? DR_OK : m->stop ? DR_END : DR_AGAIN;
    if (status == DR_OK)
        *out = *snapshot_at(m, first_after(m, after));
    pthread_mutex_unlock(&m->lock);
    return status;
}

size_t dr_monitor_history(dr_monitor *m, uint64_t after, dr_snapshot *out, size_t cap)
{
    if (!is_ours(m))
        return 0;
    size_t n = 0;
    pthread_mutex_lock(&m->lock);
    uint64_t first = first_after(m, after);
    if (m->n_made >= cap && first < m->n_made - cap + 1)
        first = m->n_made - cap + 1;
    for (uint64_t number = first; number <= m->n_made; number++)
        out[n++] = *snapshot_at(m, number);
    pthread_mutex_unlock(&m->lock);
    return n;
}

dr_status dr_monitor_set_interval(dr_monitor *m, int interval_ms, dr_error *err)
{
    if (!is_ours(m))
        return dr__fail(err, DR_ERR_FORKED, "monitor: it belongs to the parent process");
    DR_TRY(check_interval(interval_ms, err));
    pthread_mutex_lock(&m->lock);
    m->interval_ms = interval_ms;
    dr__cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return DR_OK;
}

int dr_monitor_interval(dr_monitor *m)
{
    if (!is_ours(m))
        return 0;
    pthread_mutex_lock(&m->lock);
    int interval_ms = m->interval_ms;
    pthread_mutex_unlock(&m->lock);
    return interval_ms;
}

/* --- callbacks and processes --- */

static dr_status add_hook(dr_monitor *m, dr__hooks *hooks, dr__hook hook, int *token, dr_error *err)
{
    if (!is_ours(m))
        return dr__fail(err, DR_ERR_FORKED, "monitor: it belongs to the parent process");
    *token = dr__hooks_add(hooks, hook);
    return *token ? DR_OK : dr__fail(err, DR_ERR_LIMIT, "monitor: there are %d callbacks already", DR__MAX_HOOKS);
}

dr_status dr_monitor_subscribe(dr_monitor *m, dr_monitor_fn *fn, void *user, int *token, dr_error *err)
{
    return add_hook(m, &m->subscribers, (dr__hook){ .tick = fn, .user = user }, token, err);
}

void dr_monitor_unsubscribe(dr_monitor *m, int token)
{
    if (is_ours(m))
        dr__hooks_remove(&m->subscribers, token);
}

dr_status dr__monitor_add_pipeline(dr_monitor *m, dr__pipeline_fn *fill, void *user, int *token, dr_error *err)
{
    return add_hook(m, &m->sampler.host.pipelines, (dr__hook){ .pipeline = fill, .user = user }, token, err);
}

void dr__monitor_remove_pipeline(dr_monitor *m, int token)
{
    if (is_ours(m))
        dr__hooks_remove(&m->sampler.host.pipelines, token);
}

const char *dr__monitor_root(const dr_monitor *m)
{
    return m->sampler.root;
}

dr_status dr_monitor_watch(dr_monitor *m, int pid, dr_error *err)
{
    if (!is_ours(m))
        return dr__fail(err, DR_ERR_FORKED, "monitor: it belongs to the parent process");
    switch (dr__own_cpu_watch(&m->sampler.host.own, pid)) {
    case DR__WATCH_FULL:
        return dr__fail(err, DR_ERR_LIMIT, "monitor: %d processes are watched already", DR__MAX_WATCHED);
    case DR__WATCH_GONE:
        return dr__fail(err, DR_ERR_NOT_FOUND, "monitor: there is no process %d", pid);
    default:
        return DR_OK;
    }
}

void dr_monitor_unwatch(dr_monitor *m, int pid)
{
    if (is_ours(m))
        dr__own_cpu_unwatch(&m->sampler.host.own, pid);
}

void dr_monitor_add_busy(dr_monitor *m, uint64_t busy_ns)
{
    atomic_fetch_add_explicit(&m->sampler.host.busy_ns, busy_ns, memory_order_relaxed);
}
