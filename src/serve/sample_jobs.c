/* sample_jobs.c: threads, tenants and jobs.
 *
 * One lock guards the queues of all tenants and what jobs have made.  It is held for moments: reading, ops and copying
 * happen outside of it.
 */
#include "serve/sample_jobs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "serve/cpu_budget.h"
#include "serve/make_entry.h"
#include "source/transfer.h"

enum { OPS, READS, N_CLASSES };
enum {
    FULL_BYTES = 4 << 20, /* that a job may have made and not handed over */
    MOST_TENANTS = 1000,  /* idle ones are forgotten beyond that */
    MOST_THREADS = 256,
    OPS_NICE = 10,
    LEARN_AFTER = 64,      /* samples before their times are predicted */
    BUSY_BYTES = 64 << 10, /* made for a tenant and not sent: its connections have enough to do */
    BUSY_READS = 2,        /* entries for each reader, likewise */
};

#define RETRY_NS 2000000ull /* a tenant without CPU time is looked at again */

#define ACTIVE_NS 1000000000ull /* a tenant without work for so long gets no CPU time */

typedef struct chunk {
    struct chunk *next;
    dr__text bytes;
    size_t taken;
} chunk;

typedef struct tenant {
    struct tenant *next;
    char name[128];
    dr__account account;
    dr__job *queue[N_CLASSES], **queue_end[N_CLASSES]; /* jobs that have entries to begin */
    double used[N_CLASSES];                            /* CPU seconds of ops, bytes of reads */
    int n_jobs;
    uint64_t n_open[N_CLASSES]; /* entries to begin, or begun */
    uint64_t waiting_bytes;     /* made, and not taken yet */
    uint64_t last_ops_ns;
} tenant;

struct dr__job {
    dr__jobs *jobs;
    tenant *tenant;
    dr__catalogue *catalogue;
    dr__served_set *set;
    dr__remote_request request;
    uint32_t *entries[N_CLASSES]; /* to begin: numbers in the request */
    uint8_t *outcome;             /* of each entry that came to the readers: why */
    size_t n[N_CLASSES], next_at[N_CLASSES];
    dr__job *next[N_CLASSES]; /* in the tenant's queues */
    bool queued[N_CLASSES];
    size_t n_running, n_done;
    uint64_t deadline_ns;
    chunk *first, **last;
    size_t waiting_bytes;
    bool when_all, consumer_waits, ended, broken;
    dr__job_calls calls;
};

typedef enum outcome {
#define OUTCOME(name, doc) OUT_##name,
    DR__JOB_OUTCOMES(OUTCOME)
#undef OUTCOME
        N_OUTCOMES
} outcome;

struct dr__jobs {
    dr__jobs_options o;
    pthread_mutex_t lock;
    dr__cond work[N_CLASSES];
    pthread_t threads[MOST_THREADS];
    int n_threads[N_CLASSES];
    bool stopping;
    tenant *tenants;
    int n_tenants;
    dr__cpu_budget budget;
    dr__heads *heads;
    uint64_t outcomes[N_OUTCOMES];
    uint64_t n_jobs, n_entries, waiting_bytes, cpu_ns;
    double learnt_ns, learnt_cost; /* of samples whose ops ran */
    uint64_t n_learnt;
};

/* --- tenants, under the lock --- */

static void forget_idle(dr__jobs *jobs)
{
    for (tenant **at = &jobs->tenants; *at;) {
        tenant *t = *at;
        if (t->n_jobs || t->account.balance < 0) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        dr__budget_leave(&jobs->budget, &t->account);
        dr__free(t);
        jobs->n_tenants--;
    }
}

static tenant *find_tenant(dr__jobs *jobs, const char *name)
{
    for (tenant *t = jobs->tenants; t; t = t->next)
        if (!strcmp(t->name, name))
            return t;
    if (jobs->n_tenants >= MOST_TENANTS)
        forget_idle(jobs);
    tenant *t = dr__alloc_zero(1, sizeof *t);
    if (!t)
        return NULL;
    snprintf(t->name, sizeof t->name, "%s", name);
    for (int c = 0; c < N_CLASSES; c++)
        t->queue_end[c] = &t->queue[c];
    t->next = jobs->tenants;
    jobs->tenants = t;
    jobs->n_tenants++;
    dr__budget_join(&jobs->budget, &t->account);
    return t;
}

/* The tenant has so many more entries in a class.  Who comes back after a pause has no claim to what others used
 * meanwhile. */
static void open_entries(dr__jobs *jobs, tenant *t, int class, size_t n)
{
    double least = INFINITY;
    for (const tenant *other = jobs->tenants; other; other = other->next)
        if (other != t && other->n_open[class])
            least = DR_MIN(least, other->used[class]);
    if (!t->n_open[class] && least < INFINITY)
        t->used[class] = DR_MAX(t->used[class], least);
    t->n_open[class] += n;
}

static void enqueue(dr__job *j, int class)
{
    tenant *t = j->tenant;
    if (j->queued[class] || j->next_at[class] == j->n[class] || j->ended)
        return;
    j->queued[class] = true;
    j->next[class] = NULL;
    *t->queue_end[class] = j;
    t->queue_end[class] = &j->next[class];
}

static void dequeue(dr__job *j, int class)
{
    tenant *t = j->tenant;
    if (!j->queued[class])
        return;
    for (dr__job **at = &t->queue[class]; *at; at = &(*at)->next[class])
        if (*at == j) {
            *at = j->next[class];
            if (t->queue_end[class] == &j->next[class])
                t->queue_end[class] = at;
            break;
        }
    j->queued[class] = false;
}

static void refill(dr__jobs *jobs, uint64_t now_ns)
{
    for (tenant *t = jobs->tenants; t; t = t->next) {
        if (t->n_open[OPS])
            t->last_ops_ns = now_ns;
        dr__budget_set_active(&jobs->budget, &t->account, t->n_open[OPS] || now_ns - t->last_ops_ns < ACTIVE_NS);
    }
    dr__budget_refill(&jobs->budget, now_ns);
}

/* --- what is made, under the lock --- */

static bool is_made(const dr__job *j)
{
    return j->n_done == j->request.n_entries;
}

static void notify(dr__job *j)
{
    if (!j->consumer_waits || j->ended || (j->when_all && !is_made(j)))
        return;
    j->consumer_waits = false;
    j->calls.ready(j->calls.user);
}

static bool is_full(const dr__job *j)
{
    return j->waiting_bytes >= FULL_BYTES && !j->when_all;
}

/* --- choosing --- */

typedef struct task {
    dr__job *job;
    uint32_t entry;
    outcome why; /* of reads */
} task;

static dr__job *runnable(const tenant *t, int class)
{
    dr__job *j = t->queue[class];
    while (j && is_full(j))
        j = j->next[class];
    return j;
}

static bool may_run(const dr__jobs *jobs, const dr__job *j, uint64_t now_ns)
{
    return now_ns < j->deadline_ns && dr__budget_may(&jobs->budget, &j->tenant->account);
}

/* Whether the ops of a tenant without CPU time can wait for it, because its connections are busy anyway: more samples
 * as they are stored would not reach it any sooner. */
static bool can_wait(const dr__jobs *jobs, const tenant *t, uint64_t now_ns)
{
    const dr__job *j = runnable(t, OPS);
    return now_ns < j->deadline_ns && !may_run(jobs, j, now_ns) &&
           (t->waiting_bytes >= BUSY_BYTES || t->n_open[READS] >= (uint64_t)jobs->o.n_readers * BUSY_READS);
}

/* *waits: tenants were passed over that can wait. */
static tenant *choose_tenant(const dr__jobs *jobs, int class, uint64_t now_ns, bool *waits)
{
    tenant *best = NULL;
    for (tenant *t = jobs->tenants; t; t = t->next) {
        if (!runnable(t, class) || (best && t->used[class] >= best->used[class]))
            continue;
        if (class == OPS && can_wait(jobs, t, now_ns))
            *waits = true;
        else
            best = t;
    }
    return best;
}

/* The next entry of the tenant's next job, which goes to the end of its queue: jobs of a tenant take turns. */
static task next_entry(const tenant *t, int class)
{
    dr__job *j = runnable(t, class);
    const uint32_t entry = j->entries[class][j->next_at[class]++];
    dequeue(j, class);
    enqueue(j, class);
    j->n_running++;
    return (task){ .job = j, .entry = entry, .why = (outcome)j->outcome[entry] };
}

static void to_readers(dr__jobs *jobs, dr__job *j, uint32_t entry, outcome why)
{
    j->entries[READS][j->n[READS]++] = entry;
    j->outcome[entry] = (uint8_t)why;
    j->tenant->n_open[OPS]--;
    open_entries(jobs, j->tenant, READS, 1);
    enqueue(j, READS);
    dr__cond_signal(&jobs->work[READS]);
}

/* An entry of ops whose tenant has CPU time.  Those whose tenant has none, and cannot wait for it, go to the readers.
 */
static bool choose_ops(dr__jobs *jobs, task *out, bool *waits)
{
    const uint64_t now_ns = dr__now_ns();
    refill(jobs, now_ns);
    for (tenant *t; (t = choose_tenant(jobs, OPS, now_ns, waits)) != NULL;) {
        *out = next_entry(t, OPS);
        if (may_run(jobs, out->job, now_ns))
            return true;
        out->job->n_running--;
        to_readers(jobs, out->job, out->entry, OUT_shed);
    }
    return false;
}

static bool choose_reads(dr__jobs *jobs, task *out)
{
    bool waits = false;
    tenant *t = choose_tenant(jobs, READS, 0, &waits);
    if (t)
        *out = next_entry(t, READS);
    return t != NULL;
}

/* --- jobs --- */

static void free_chunks(dr__job *j)
{
    for (chunk *c; (c = j->first) != NULL;) {
        j->first = c->next;
        dr__free(c->bytes.text);
        dr__free(c);
    }
}

static void free_job(dr__job *j)
{
    free_chunks(j);
    dr__remote_request_free(&j->request);
    dr__catalogue_unref(&j->catalogue);
    for (int c = 0; c < N_CLASSES; c++)
        dr__free(j->entries[c]);
    dr__free(j->outcome);
    dr__free(j);
}

/* Whether nobody knows the job any more; it is then taken off the books. */
static bool is_over(dr__jobs *jobs, dr__job *j)
{
    if (!j->ended || j->n_running)
        return false;
    for (int c = 0; c < N_CLASSES; c++)
        j->tenant->n_open[c] -= j->n[c] - j->next_at[c];
    j->tenant->n_jobs--;
    jobs->n_jobs--;
    jobs->n_entries -= j->request.n_entries - j->n_done;
    jobs->waiting_bytes -= j->waiting_bytes;
    j->tenant->waiting_bytes -= j->waiting_bytes;
    return true;
}

/* Adds what a task has made. */
static void add_chunk(dr__jobs *jobs, dr__job *j, chunk *c)
{
    *j->last = c;
    j->last = &c->next;
    j->waiting_bytes += c->bytes.n;
    jobs->waiting_bytes += c->bytes.n;
    j->tenant->waiting_bytes += c->bytes.n;
}

/* An entry is made, or can never be: without memory for a frame the answer breaks off. */
static void finish(dr__jobs *jobs, const task *t, chunk *c, outcome what, double use, int class)
{
    dr__job *j = t->job;
    pthread_mutex_lock(&jobs->lock);
    j->n_running--;
    j->n_done++;
    jobs->n_entries--;
    j->tenant->n_open[class]--;
    j->tenant->used[class] += use;
    jobs->outcomes[what]++;
    if (c)
        add_chunk(jobs, j, c);
    else
        j->broken = true;
    notify(j);
    const bool over = is_over(jobs, j);
    pthread_mutex_unlock(&jobs->lock);
    if (over)
        free_job(j);
}

static chunk *new_chunk(void)
{
    return dr__alloc_zero(1, sizeof(chunk));
}

static void free_chunk(chunk *c)
{
    if (c)
        dr__free(c->bytes.text);
    dr__free(c);
}

/* --- threads --- */

static uint32_t to_us(uint64_t ns)
{
    return (uint32_t)DR_MIN(ns / 1000, UINT32_MAX);
}

static void read_task(dr__jobs *jobs, dr__maker *maker, const task *t)
{
    dr__job *j = t->job;
    const uint64_t start_ns = dr__thread_cpu_ns();
    bool failed = false;
    chunk *c = new_chunk();
    dr_status status =
        c ? dr__make_stored(maker, j->set, &j->request, t->entry, &c->bytes, &failed, NULL) : DR_ERR_NOMEM;
    if (status != DR_OK) {
        free_chunk(c);
        c = NULL;
    } else {
        dr__remote_set_cpu(&c->bytes, 0, to_us(dr__thread_cpu_ns() - start_ns));
    }
    finish(jobs, t, c, failed || !c ? OUT_failed : t->why, c ? (double)c->bytes.n : 0, READS);
}

/* lock: what the ops of a sample cost, for the prediction of others. */
static void learn(dr__jobs *jobs, const dr__maker *maker, uint64_t ns)
{
    jobs->learnt_ns += (double)ns;
    jobs->learnt_cost += maker->cost;
    jobs->n_learnt++;
}

static double most_cost(const dr__jobs *jobs)
{
    return jobs->n_learnt >= LEARN_AFTER && jobs->learnt_ns > 0
               ? jobs->o.most_sample_s * 1e9 * jobs->learnt_cost / jobs->learnt_ns
               : 0;
}

static void ops_task(dr__jobs *jobs, dr__maker *maker, const task *t)
{
    dr__job *j = t->job;
    const uint64_t start_ns = dr__thread_cpu_ns();
    chunk *c = new_chunk();
    const dr_status status =
        c ? dr__make_ops(maker, jobs->heads, j->set, &j->request, t->entry, &c->bytes, NULL) : DR_ERR_NOMEM;
    const uint64_t ns = dr__thread_cpu_ns() - start_ns;
    pthread_mutex_lock(&jobs->lock);
    refill(jobs, dr__now_ns());
    dr__budget_charge(&jobs->budget, &j->tenant->account, ns);
    jobs->cpu_ns += ns;
    if (status == DR_OK) {
        learn(jobs, maker, ns);
    } else { /* the readers send it as it is stored */
        j->n_running--;
        j->tenant->used[OPS] += (double)ns * 1e-9;
        to_readers(jobs, j, t->entry, OUT_refused);
    }
    const bool over = status != DR_OK && is_over(jobs, j);
    pthread_mutex_unlock(&jobs->lock);
    if (status == DR_OK) {
        dr__remote_set_cpu(&c->bytes, 0, to_us(ns));
        finish(jobs, t, c, OUT_offloaded, (double)ns * 1e-9, OPS);
        return;
    }
    free_chunk(c);
    if (over)
        free_job(j);
}

static bool next_task(dr__jobs *jobs, int class, dr__maker *maker, task *out)
{
    pthread_mutex_lock(&jobs->lock);
    for (bool waits = false; !jobs->stopping; waits = false) {
        if (class == OPS ? choose_ops(jobs, out, &waits) : choose_reads(jobs, out))
            break;
        dr__cond_wait(&jobs->work[class], &jobs->lock, waits ? dr__now_ns() + RETRY_NS : UINT64_MAX);
    }
    maker->most_cost = most_cost(jobs);
    const bool go = !jobs->stopping;
    pthread_mutex_unlock(&jobs->lock);
    return go;
}

static void work(dr__jobs *jobs, int class)
{
    dr__maker maker;
    task t;
    if (!dr__maker_open(&maker, jobs->o.memory, jobs->o.most_pixels))
        return;
    dr__transfer_watch(jobs->o.cancel);
    while (next_task(jobs, class, &maker, &t))
        (class == OPS ? ops_task : read_task)(jobs, &maker, &t);
    dr__maker_close(&maker);
}

static void *run_ops(void *arg)
{
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), OPS_NICE); /* Linux: of this thread alone */
    work(arg, OPS);
    return NULL;
}

static void *run_reads(void *arg)
{
    work(arg, READS);
    return NULL;
}

static bool start_threads(dr__jobs *jobs, int class, int n)
{
    const int before = jobs->n_threads[OPS] + jobs->n_threads[READS];
    for (int i = 0; i < n; i++) {
        if (!dr__thread_start(&jobs->threads[before + i], class == OPS ? "dr-serve-op" : "dr-serve-read",
                              class == OPS ? run_ops : run_reads, jobs))
            return false;
        jobs->n_threads[class]++;
    }
    return true;
}

dr_status dr__jobs_new(const dr__jobs_options *o, dr__jobs **out, dr_error *err)
{
    dr__jobs *jobs = *out = dr__alloc_zero(1, sizeof *jobs);
    if (!jobs)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    jobs->o = *o;
    pthread_mutex_init(&jobs->lock, NULL);
    for (int c = 0; c < N_CLASSES; c++)
        dr__cond_init(&jobs->work[c]);
    dr__budget_init(&jobs->budget, o->cpus, dr__now_ns());
    jobs->heads = dr__heads_new();
    const int n_ops =
        o->cpus > 0 ? (int)DR_MIN(ceil(o->cpus) * DR_MAX(o->ops_threads_per_cpu, 1), MOST_THREADS / 2) : 0;
    if (jobs->heads && start_threads(jobs, OPS, n_ops) &&
        start_threads(jobs, READS, DR_MIN(DR_MAX(o->n_readers, 1), MOST_THREADS / 2)))
        return DR_OK;
    dr__jobs_free(out);
    return dr__fail(err, DR_ERR_NOMEM, "serve: no memory or no threads");
}

void dr__jobs_free(dr__jobs **out)
{
    dr__jobs *jobs = *out;
    *out = NULL;
    if (!jobs)
        return;
    pthread_mutex_lock(&jobs->lock);
    jobs->stopping = true;
    for (int c = 0; c < N_CLASSES; c++)
        dr__cond_broadcast(&jobs->work[c]);
    pthread_mutex_unlock(&jobs->lock);
    for (int i = 0; i < jobs->n_threads[OPS] + jobs->n_threads[READS]; i++)
        pthread_join(jobs->threads[i], NULL);
    for (tenant *t; (t = jobs->tenants) != NULL;) {
        jobs->tenants = t->next;
        dr__free(t);
    }
    if (jobs->heads)
        dr__heads_free(&jobs->heads);
    for (int c = 0; c < N_CLASSES; c++)
        dr__cond_destroy(&jobs->work[c]);
    pthread_mutex_destroy(&jobs->lock);
    dr__free(jobs);
}

void dr__jobs_get_stats(dr__jobs *jobs, dr__jobs_stats *out)
{
    pthread_mutex_lock(&jobs->lock);
    *out = (dr__jobs_stats){
#define TAKE(name, doc) .name = jobs->outcomes[OUT_##name],
        DR__JOB_OUTCOMES(TAKE)
#undef TAKE
            .cpu_ns = jobs->cpu_ns,
        .jobs = jobs->n_jobs,
        .entries = jobs->n_entries,
        .waiting_bytes = jobs->waiting_bytes,
    };
    pthread_mutex_unlock(&jobs->lock);
}

void dr__jobs_tenants(dr__jobs *jobs, void (*see)(void *user, const char *tenant, uint64_t cpu_ns), void *user)
{
    pthread_mutex_lock(&jobs->lock);
    for (const tenant *t = jobs->tenants; t; t = t->next)
        see(user, t->name, t->account.used_ns);
    pthread_mutex_unlock(&jobs->lock);
}

/* --- a job's life --- */

/* Sorts the entries into classes.  Without CPU time at all nothing waits for it. */
static bool sort_entries(const dr__jobs *jobs, dr__job *j)
{
    const size_t n = j->request.n_entries;
    for (int c = 0; c < N_CLASSES; c++)
        j->entries[c] = dr__alloc_zero(n, sizeof *j->entries[c]);
    j->outcome = dr__alloc_zero(n, 1);
    if (!j->entries[OPS] || !j->entries[READS] || !j->outcome)
        return false;
    for (size_t i = 0; i < n; i++) {
        const dr__remote_entry *e = &j->request.entries[i];
        const int class = e->prefix && jobs->o.cpus > 0 ? OPS : READS;
        j->entries[class][j->n[class]++] = (uint32_t)i;
        j->outcome[i] = e->prefix ? OUT_shed : e->by_ranges ? OUT_ranges : OUT_stored;
    }
    return true;
}

static dr_status list_job(dr__jobs *jobs, dr__job *j, const char *name, dr_error *err)
{
    tenant *t = find_tenant(jobs, name);
    if (!t)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    if (t->n_jobs >= jobs->o.most_jobs)
        return dr__fail(err, DR_ERR_LIMIT, "%d requests for samples at a time; no more are allowed", t->n_jobs);
    j->tenant = t;
    t->n_jobs++;
    jobs->n_jobs++;
    jobs->n_entries += j->request.n_entries;
    for (int c = 0; c < N_CLASSES; c++) {
        open_entries(jobs, t, c, j->n[c]);
        enqueue(j, c);
        if (j->n[c])
            dr__cond_broadcast(&jobs->work[c]);
    }
    return DR_OK;
}

dr_status dr__job_begin(dr__jobs *jobs, const char *name, dr__catalogue *catalogue, dr__served_set *set,
                        dr__remote_request *request, bool when_all, const dr__job_calls *calls, dr__job **out,
                        dr_error *err)
{
    dr__job *j = *out = dr__alloc_zero(1, sizeof *j);
    if (!j)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    j->jobs = jobs;
    j->request = *request;
    j->set = set;
    j->last = &j->first;
    j->when_all = j->consumer_waits = when_all;
    j->calls = *calls;
    j->deadline_ns = dr__now_ns() + (uint64_t)(jobs->o.most_seconds * 1e9);
    dr_status status = sort_entries(jobs, j) ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    if (status == DR_OK) {
        j->catalogue = dr__catalogue_ref(catalogue);
        pthread_mutex_lock(&jobs->lock);
        status = list_job(jobs, j, name, err);
        pthread_mutex_unlock(&jobs->lock);
    }
    if (status == DR_OK) {
        *request = (dr__remote_request){ 0 };
        return DR_OK;
    }
    j->request = (dr__remote_request){ 0 }; /* still the caller's */
    free_job(j);
    *out = NULL;
    return status;
}

dr__take dr__job_take(dr__job *j, void *out, size_t room, size_t *n)
{
    dr__jobs *jobs = j->jobs;
    *n = 0;
    pthread_mutex_lock(&jobs->lock);
    chunk *c = j->first;
    const bool end = !c && (is_made(j) || j->broken);
    j->consumer_waits = !c && !end;
    if (j->consumer_waits && j->calls.wait)
        j->calls.wait(j->calls.user);
    pthread_mutex_unlock(&jobs->lock);
    if (!c)
        return !end ? DR__TAKE_WAIT : j->broken ? DR__TAKE_BROKEN : DR__TAKE_END;
    *n = DR_MIN(room, c->bytes.n - c->taken);
    memcpy(out, c->bytes.text + c->taken, *n);
    c->taken += *n;
    if (c->taken < c->bytes.n)
        return DR__TAKE_BYTES;
    pthread_mutex_lock(&jobs->lock);
    j->first = c->next;
    if (!j->first)
        j->last = &j->first;
    const bool was_full = is_full(j);
    j->waiting_bytes -= c->bytes.n;
    jobs->waiting_bytes -= c->bytes.n;
    j->tenant->waiting_bytes -= c->bytes.n;
    for (int k = 0; was_full && !is_full(j) && k < N_CLASSES; k++)
        dr__cond_broadcast(&jobs->work[k]);
    pthread_mutex_unlock(&jobs->lock);
    free_chunk(c);
    return DR__TAKE_BYTES;
}

char *dr__job_take_all(dr__job *j, size_t *n, unsigned *prefix)
{
    dr__remote_head head;
    size_t got;
    pthread_mutex_lock(&j->jobs->lock);
    const size_t size = j->waiting_bytes;
    pthread_mutex_unlock(&j->jobs->lock);
    char *all = size ? dr__alloc(size) : NULL;
    *n = 0;
    *prefix = 0;
    while (all && *n < size && dr__job_take(j, all + *n, size - *n, &got) == DR__TAKE_BYTES)
        *n += got;
    if (all && *n >= DR__REMOTE_HEAD && dr__remote_parse_head(all, UINT64_MAX, &head, NULL) == DR_OK)
        *prefix = head.prefix;
    return all;
}

void dr__job_end(dr__job **job)
{
    dr__job *j = *job;
    *job = NULL;
    if (!j)
        return;
    dr__jobs *jobs = j->jobs;
    pthread_mutex_lock(&jobs->lock);
    j->ended = true;
    for (int c = 0; c < N_CLASSES; c++)
        dequeue(j, c);
    const bool over = is_over(jobs, j);
    pthread_mutex_unlock(&jobs->lock);
    if (over)
        free_job(j);
}
