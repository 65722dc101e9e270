/* transfer_thread.c: the thread that carries out requests.
 *
 * It owns libcurl's multi handle and all submitted jobs.  Each round takes new jobs, starts those that are due and fit
 * the limits, looks for attempts that stand still or are late, lets libcurl work, and judges what ended.  Then it
 * sleeps until a socket, a caller or a deadline wakes it.
 *
 * Locks: `libcurl` is held while the thread does anything but sleep, so that a fork finds neither libcurl nor its TLS
 * library in the middle of something; `lock` guards what callers and the thread share.  The order is libcurl, lock.
 */
#include "source/transfer_parts.h"

#ifdef DR_HAVE_CURL

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"

enum {
    MAX_HOST_CONNECTIONS = 64,
    KEPT_CONNECTIONS = 128,
    POLL_MOST_MS = 60000,
    HEDGE_PART = 16,        /* at most one request in so many is sent twice */
    UNKNOWN_SIZE = 1 << 20, /* what a body of unknown size counts for */
    MAX_HOSTS = 256,
    SLOWEST = 64 * 1024, /* bytes a second below which a body uses up its timeout */
};

static const uint64_t DEFAULT_TIMEOUT_NS = UINT64_C(300000000000), DEFAULT_IDLE_NS = UINT64_C(20000000000);

static struct {
    pthread_mutex_t libcurl;
    pthread_mutex_t lock;
    /* lock */
    bool running, stopping;
    pthread_t thread;
    CURLM *multi;
    dr__job *inbox_head, *inbox_tail;
    dr__transfer_limits limits;
    dr__transfer_stats stats;
    /* the thread's own */
    const dr__curl_calls *curl;
    dr__job *jobs, *last_job; /* in the order in which they came */
    unsigned in_flight;       /* attempts */
    uint64_t held;            /* bytes of the limit */
    bool freed;               /* there may be room for a job that was passed over in this round */
    dr__transfer_host *hosts;
    size_t n_hosts;
    dr_rng rng;
} t = { .libcurl = PTHREAD_MUTEX_INITIALIZER,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .limits = { .requests = 64, .bytes = 256 << 20 } };

void dr__transfer_lock(void)
{
    pthread_mutex_lock(&t.lock);
}

void dr__transfer_unlock(void)
{
    pthread_mutex_unlock(&t.lock);
}

pthread_mutex_t *dr__transfer_mutex(void)
{
    return &t.lock;
}

void dr__transfer_wake(void)
{
    if (t.running)
        t.curl->multi_wakeup(t.multi);
}

/* --- jobs --- */

static dr__transfer_host *find_host(const char *url)
{
    const char *slashes = strstr(url, "://"), *end = slashes ? slashes + 3 + strcspn(slashes + 3, "/?#") : url;
    const char *name = url;
    const size_t n = (size_t)(end - name);
    dr__transfer_host *h = t.hosts;
    for (; h; h = h->next)
        if (strlen(h->name) == n && !strncasecmp(h->name, name, n))
            return h;
    if (t.n_hosts >= MAX_HOSTS && t.hosts)
        return t.hosts; /* hosts beyond it share one */
    h = dr__alloc_zero(1, sizeof *h + n + 1);
    if (!h)
        return NULL;
    memcpy(h->name, name, n);
    h->next = t.hosts;
    t.hosts = h;
    t.n_hosts++;
    return h;
}

static void add_job(dr__job *j)
{
    j->next = NULL;
    j->prev = t.last_job;
    if (t.last_job)
        t.last_job->next = j;
    else
        t.jobs = j;
    t.last_job = j;
}

static void remove_job(dr__job *j)
{
    if (j->prev)
        j->prev->next = j->next;
    else
        t.jobs = j->next;
    if (j->next)
        j->next->prev = j->prev;
    else
        t.last_job = j->prev;
}

static void end_attempt(dr__job *j, int i)
{
    dr__attempt *a = j->attempts[i];
    if (!a)
        return;
    long connects = 0;
    t.curl->easy_getinfo(a->easy, CURLINFO_NUM_CONNECTS, &connects);
    t.curl->multi_remove_handle(t.multi, a->easy);
    if (j->winner == a)
        j->winner = NULL;
    dr__attempt_free(t.curl, a);
    j->attempts[i] = NULL;
    t.in_flight--;
    t.freed = true;
    if (!j->attempts[!i]) {
        t.held -= j->held;
        j->held = 0;
    }
    dr__transfer_lock();
    t.stats.connects += (uint64_t)connects;
    dr__transfer_unlock();
}

/* The job is the caller's again as soon as the lock is released. */
static void finish(dr__job *j, dr_status status)
{
    end_attempt(j, 0);
    end_attempt(j, 1);
    remove_job(j);
    j->reply->tries = j->tries;
    j->reply->got = j->got;
    dr__transfer_lock();
    t.stats.failed += status != DR_OK && status != DR_ERR_CANCELLED;
    t.stats.bytes += j->got;
    j->status = status;
    dr__cond_signal(&j->changed);
    dr__transfer_unlock();
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Clocks of virtual machines may differ a little between CPUs. */
static uint64_t since(uint64_t ns, uint64_t now)
{
    return now > ns ? now - ns : 0;
}

/* The time the job has used up: that of its consumer and of a body that arrives fast enough does not count. */
static uint64_t used_ns(const dr__job *j, uint64_t now)
{
    return since(j->began_ns + j->paused_ns + j->got / SLOWEST * 1000000000, now);
}

static uint64_t timeout_of(const dr__job *j)
{
    return j->request->timeout_ns ? j->request->timeout_ns : DEFAULT_TIMEOUT_NS;
}

static void give_up(dr__job *j, uint64_t now)
{
    const double seconds = (double)since(j->began_ns, now) / 1e9;
    if (j->failure[0])
        dr__fail(&j->err, DR_ERR_IO, "%s: %s (given up after %u tries in %.1f s)", j->name, j->failure, j->tries,
                 seconds);
    else
        dr__fail(&j->err, DR_ERR_IO, "%s: no answer within %.1f s", j->name, seconds);
    finish(j, DR_ERR_IO);
}

/* --- sending --- */

static bool fits(const dr__job *j, const dr__transfer_limits *limits)
{
    if (!t.in_flight)
        return true;
    const uint64_t size = j->streams ? 2 * DR__STREAM_ROOM : j->request->size ? j->request->size : UNKNOWN_SIZE;
    return t.in_flight < limits->requests && t.held + size <= limits->bytes;
}

static bool send_attempt(dr__job *j, int i, bool hedge)
{
    dr__attempt *a = dr__attempt_new(t.curl, j, hedge);
    if (!a || t.curl->multi_add_handle(t.multi, a->easy) != CURLM_OK) {
        if (a)
            dr__attempt_free(t.curl, a);
        return false;
    }
    j->attempts[i] = a;
    t.in_flight++;
    if (!j->held) {
        j->held = j->streams ? 2 * DR__STREAM_ROOM : j->request->size ? j->request->size : UNKNOWN_SIZE;
        t.held += j->held;
    }
    dr__transfer_lock();
    t.stats.requests++;
    t.stats.hedges += hedge;
    t.stats.retries += !hedge && j->tries > 0;
    t.stats.resumed += !hedge && j->got > 0;
    dr__transfer_unlock();
    return true;
}

static void start(dr__job *j)
{
    j->hedged = false;
    if (!send_attempt(j, 0, false)) {
        dr__fail(&j->err, DR_ERR_NOMEM, "%s: out of memory", j->name);
        finish(j, DR_ERR_NOMEM);
        return;
    }
    j->tries++;
    j->fresh = false;
    j->due_ns = UINT64_MAX;
}

/* After a failed try; `wait`: not at once. */
static void schedule_retry(dr__job *j, uint64_t now, bool wait, uint64_t retry_after_ns)
{
    const uint64_t pause = wait ? dr__retry_wait_ns(j->tries, dr__rng_u32(&t.rng), retry_after_ns) : 0;
    if (used_ns(j, now) + pause > timeout_of(j)) {
        give_up(j, now);
        return;
    }
    j->due_ns = now + pause;
}

static void attempt_over(dr__attempt *a, CURLcode code)
{
    dr__job *j = a->job;
    const int i = j->attempts[1] == a;
    const uint64_t now = dr__now_ns();
    uint64_t retry_after_ns = 0;
    const dr__verdict verdict = dr__attempt_ended(t.curl, a, code, &retry_after_ns);
    if (verdict == DR__VERDICT_DONE && !j->request->body && a->first_ns)
        dr__answer_times_add(&j->host->times, a->first_ns - a->began_ns);
    if (verdict == DR__VERDICT_DONE && i == 1) {
        dr__transfer_lock();
        t.stats.hedge_won++;
        dr__transfer_unlock();
    }
    end_attempt(j, i);
    if (verdict == DR__VERDICT_DONE)
        finish(j, DR_OK);
    else if (verdict == DR__VERDICT_FAILED)
        finish(j, j->err.status);
    else if (!j->attempts[!i])
        schedule_retry(j, now, verdict == DR__VERDICT_RETRY, retry_after_ns);
}

/* --- one round --- */

static void take_inbox(void)
{
    dr__transfer_lock();
    dr__job *j = t.inbox_head;
    t.inbox_head = t.inbox_tail = NULL;
    dr__transfer_unlock();
    while (j) {
        dr__job *next = j->next;
        add_job(j);
        j->host = find_host(j->request->url);
        if (!j->host) {
            dr__fail(&j->err, DR_ERR_NOMEM, "%s: out of memory", j->name);
            finish(j, DR_ERR_NOMEM);
        }
        j = next;
    }
}

static bool is_hedgeable(const dr__job *j)
{
    const dr__transfer_request *q = j->request;
    return !q->body && !q->no_hedge && !q->method && !j->hedged && j->got == 0;
}

/* Sends a late request a second time; returns when it will be late. */
static uint64_t look_for_stragglers(dr__job *j, uint64_t now, const dr__transfer_limits *limits)
{
    const uint64_t late = dr__answer_times_late_ns(&j->host->times);
    const dr__attempt *a = j->attempts[0];
    if (!a || a->first_ns || j->attempts[1] || late == UINT64_MAX || !is_hedgeable(j))
        return UINT64_MAX;
    if (since(a->began_ns, now) < late)
        return a->began_ns + late;
    if (t.in_flight < limits->requests && (t.stats.hedges + 1) * HEDGE_PART <= t.stats.requests)
        j->hedged = send_attempt(j, 1, true);
    return UINT64_MAX;
}

/* Ends an attempt that stands still, by which the job may end; returns when one will have stood too long. */
static uint64_t look_for_stalls(dr__job *j, uint64_t now)
{
    uint64_t wake = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        dr__attempt *a = j->attempts[i];
        if (!a || a->paused_at_ns)
            continue;
        if (since(a->last_ns, now) >= j->idle_ns) {
            snprintf(a->failure, sizeof a->failure, "no byte arrived for %.1f s", (double)since(a->last_ns, now) / 1e9);
            attempt_over(a, CURLE_OPERATION_TIMEDOUT);
            return now;
        }
        wake = earlier(wake, a->last_ns + j->idle_ns);
    }
    return wake;
}

static void resume_paused(dr__job *j, uint64_t now)
{
    for (int i = 0; i < 2; i++) {
        dr__attempt *a = j->attempts[i];
        if (!a || !a->paused_at_ns)
            continue;
        dr__transfer_lock();
        const bool room = j->n_waiting == 0;
        dr__transfer_unlock();
        if (!room)
            continue;
        j->paused_ns += since(a->paused_at_ns, now);
        a->paused_at_ns = 0;
        a->last_ns = now;
        t.curl->easy_pause(a->easy, CURLPAUSE_CONT);
    }
}

/* Looks after one job, which may end by it; returns when it must be looked after next. */
static uint64_t look_after(dr__job *j, uint64_t now, const dr__transfer_limits *limits)
{
    dr__transfer_lock();
    const bool cancelled = j->cancelled || t.stopping;
    dr__transfer_unlock();
    if (cancelled) {
        dr__fail(&j->err, DR_ERR_CANCELLED, "%s: cancelled", j->name);
        finish(j, DR_ERR_CANCELLED);
        return UINT64_MAX;
    }
    resume_paused(j, now);
    const bool paused =
        (j->attempts[0] && j->attempts[0]->paused_at_ns) || (j->attempts[1] && j->attempts[1]->paused_at_ns);
    const uint64_t used = used_ns(j, now), timeout = timeout_of(j);
    if (used > timeout && !paused) {
        give_up(j, now);
        return UINT64_MAX;
    }
    uint64_t wake = paused ? UINT64_MAX : now + (timeout - used) + 1000000;
    if (!j->attempts[0] && !j->attempts[1]) {
        if (j->due_ns > now)
            return earlier(wake, j->due_ns);
        if (fits(j, limits))
            start(j);
        return wake; /* libcurl asks for its first step; room comes with an attempt's end */
    }
    const dr__attempt *w = j->winner;
    for (int i = 0; i < 2; i++)
        if (w && j->attempts[i] && j->attempts[i] != w)
            end_attempt(j, i);
    wake = earlier(wake, look_for_stragglers(j, now, limits));
    return earlier(wake, look_for_stalls(j, now));
}

static void take_messages(void)
{
    int left;
    for (CURLMsg *m; (m = t.curl->multi_info_read(t.multi, &left));) {
        dr__attempt *a = NULL;
        if (m->msg == CURLMSG_DONE && t.curl->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&a) == CURLE_OK &&
            a)
            attempt_over(a, m->data.result);
    }
}

static void update_stats(uint64_t now)
{
    const dr__job *longest = NULL;
    unsigned waiting = 0;
    for (const dr__job *j = t.jobs; j; j = j->next) {
        if (!j->failure[0])
            continue;
        waiting++;
        if (!longest || j->began_ns < longest->began_ns)
            longest = j;
    }
    dr__transfer_lock();
    t.stats.in_flight = t.in_flight;
    t.stats.waiting = waiting;
    t.stats.wait_ns = longest ? since(longest->began_ns, now) : 0;
    t.stats.trouble[0] = 0;
    if (longest)
        snprintf(t.stats.trouble, sizeof t.stats.trouble, "%.120s: %.120s", longest->name, longest->failure);
    dr__transfer_unlock();
}

/* Returns until when the thread may sleep. */
static uint64_t one_round(void)
{
    int running;
    take_inbox();
    dr__transfer_lock();
    const dr__transfer_limits limits = t.limits;
    dr__transfer_unlock();
    t.curl->multi_perform(t.multi, &running);
    take_messages();
    const uint64_t now = dr__now_ns();
    uint64_t wake = UINT64_MAX;
    t.freed = false;
    for (dr__job *j = t.jobs, *next; j; j = next) {
        next = j->next;
        wake = earlier(wake, look_after(j, now, &limits));
    }
    update_stats(now);
    return t.freed ? now : wake;
}

static int sleep_ms(uint64_t until)
{
    const uint64_t now = dr__now_ns();
    if (until <= now)
        return 0;
    return (int)DR_MIN((until - now) / 1000000 + 1, POLL_MOST_MS);
}

static void *run(void *unused)
{
    (void)unused;
    bool stop = false;
    while (!stop) {
        pthread_mutex_lock(&t.libcurl);
        const uint64_t until = one_round();
        dr__transfer_lock();
        stop = t.stopping && !t.jobs && !t.inbox_head;
        dr__transfer_unlock();
        pthread_mutex_unlock(&t.libcurl);
        if (!stop)
            t.curl->multi_poll(t.multi, NULL, 0, sleep_ms(until), NULL);
    }
    return NULL;
}

/* --- its life --- */

/* At the end of the process, before the libraries that libcurl uses are torn down. */
static void stop_thread(void)
{
    dr__transfer_lock();
    const bool running = t.running;
    t.stopping = true;
    dr__transfer_wake();
    dr__transfer_unlock();
    if (!running)
        return;
    pthread_join(t.thread, NULL);
    dr__transfer_lock();
    t.running = false;
    dr__transfer_unlock();
    t.curl->multi_cleanup(t.multi);
    for (dr__transfer_host *h = t.hosts, *next; h; h = next) {
        next = h->next;
        dr__free(h);
    }
    t.hosts = NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&t.libcurl);
    pthread_mutex_lock(&t.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&t.lock);
    pthread_mutex_unlock(&t.libcurl);
}

/* The thread is not in the child, and its jobs are those of the parent's threads.  libcurl's handles are left alone:
 * closing them would talk on connections that the parent uses.  What was learnt of servers is kept. */
static void reset_in_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    t.libcurl = t.lock = fresh;
    t.running = false;
    t.multi = NULL;
    t.inbox_head = t.inbox_tail = t.jobs = t.last_job = NULL;
    t.in_flight = 0;
    t.held = 0;
    t.stats = (dr__transfer_stats){ 0 };
    dr__transfer_close_sockets_in_child();
}

static void once_a_process(void)
{
    dr__fork_in_child(reset_in_child);
    pthread_atfork(before_fork, after_fork, NULL);
    atexit(stop_thread);
}

/* lock */
static bool start_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const dr__rng_name seed = { .seed = dr__now_ns(),
                                .epoch = (uint64_t)(uintptr_t)&once ^ dr__clock_ns(CLOCK_REALTIME) };
    pthread_once(&once, once_a_process);
    t.rng = dr__rng_open(&seed, 0);
    t.multi = t.curl->multi_init();
    if (!t.multi)
        return false;
    t.curl->multi_setopt(t.multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)MAX_HOST_CONNECTIONS);
    t.curl->multi_setopt(t.multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
    t.running = dr__thread_start(&t.thread, "drapps-transfer", run, NULL);
    if (!t.running) {
        t.curl->multi_cleanup(t.multi);
        t.multi = NULL;
    }
    return t.running;
}

dr_status dr__transfer_submit(dr__job *j, dr_error *err)
{
    const dr__curl_calls *curl = dr__curl(err);
    if (!curl)
        return dr__error_prefix(err, "%s", j->name), DR_ERR_UNSUPPORTED;
    j->began_ns = dr__now_ns();
    j->idle_ns = j->request->idle_ns ? j->request->idle_ns : DR_MIN(DEFAULT_IDLE_NS, timeout_of(j));
    dr__transfer_lock();
    if (!t.curl)
        t.curl = curl; /* the same for ever: the thread reads it without the lock */
    if (t.stopping || (!t.running && !start_thread())) {
        const dr_status status = t.stopping ? DR_ERR_CANCELLED : DR_ERR_NOMEM;
        dr__transfer_unlock();
        return dr__fail(err, status, "%s: %s", j->name,
                        status == DR_ERR_NOMEM ? "cannot start a thread" : "the process is ending");
    }
    j->next = NULL;
    if (t.inbox_tail)
        t.inbox_tail->next = j;
    else
        t.inbox_head = j;
    t.inbox_tail = j;
    dr__transfer_wake();
    dr__transfer_unlock();
    return DR_OK;
}

void dr__transfer_set_limits(const dr__transfer_limits *limits)
{
    dr__transfer_lock();
    t.limits.requests = DR_MAX(limits->requests, 1);
    t.limits.bytes = limits->bytes;
    dr__transfer_wake();
    dr__transfer_unlock();
}

void dr__transfer_get_stats(dr__transfer_stats *stats)
{
    dr__transfer_lock();
    *stats = t.stats;
    dr__transfer_unlock();
}

#endif
