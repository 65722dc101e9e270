/* shmpool_plant.c: the knobs and the flow of a shmpool. */
#include "loader/shmpool_plant.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/limits.h"
#include "shmpool/shared.h"
#include "sched/tables.h"
#include "trace/event.h"

_Static_assert((int)DR_MAX_WHERE == (int)DR_SHMPOOL_WHERE_BYTES, "the same text");

enum { WORKERS_ALWAYS_ALLOWED = 4, PAUSE_MS = 2000, PAUSE_STEPS = 8 };

static const uint32_t knobs = 1u << DR_KNOB_WORKERS | 1u << DR_KNOB_PREFETCH | 1u << DR_KNOB_PREFETCH_BYTES |
                              1u << DR_KNOB_LANE_THRESHOLD | 1u << DR_KNOB_CPU_CEILING | 1u << DR_KNOB_PRIORITY;

/* Knobs that the shmpool itself keeps, under its own lock. */
static const uint32_t shmpool_knobs =
    1u << DR_KNOB_PREFETCH_BYTES | 1u << DR_KNOB_LANE_THRESHOLD | 1u << DR_KNOB_CPU_CEILING;

/* How long the main thread of a process, which makes the samples, was runnable and had no CPU.  false: the kernel does
 * not report it. */
static bool read_delay(int pid, double *s)
{
    char path[48], text[96];
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    unsigned long long ran, waited;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const bool known = sscanf(text, "%llu %llu", &ran, &waited) == 2 && ran > 0;
    *s = known ? (double)waited * 1e-9 : 0;
    return known;
}

void dr__shmpool_plant_init(dr__shmpool_plant *p, dr_shmpool *shmpool, const dr_shmpool_adapt_options *o)
{
    dr__limits limits;
    dr__limits_read("", &limits);
    const double cpus = ceil((double)limits.affinity_cpus / limits.local_world);
    *p =
        (dr__shmpool_plant){ .shmpool = dr_shmpool_ref(shmpool),
                             .memory_limit = o->memory_limit ? (double)o->memory_limit
                                                             : (double)limits.memory_limit / (4.0 * limits.local_world),
                             .most_workers =
                                 o->most_workers > 0 ? o->most_workers : DR_MAX(2 * cpus, WORKERS_ALWAYS_ALLOWED),
                             .workers = o->workers,
                             .prefetch = o->prefetch,
                             .trace = o->trace,
                             .pinned = o->pinned | (o->cpu_limit > 0 ? 1u << DR_KNOB_CPU_CEILING : 0) };
    double delay;
    p->tells_delay = read_delay(getpid(), &delay);
    p->memory_limit = DR_MIN(p->memory_limit, dr__knob_row_of(DR_KNOB_PREFETCH_BYTES)->most);
    p->most_workers = DR_MIN(DR_MAX(p->most_workers, o->workers), DR__SHMPOOL_WORKERS);
    pthread_mutex_init(&p->lock, NULL);
    dr__cond_init(&p->proposed);
    if (o->cpu_limit > 0) /* applies with every policy */
        dr_shmpool_set_ceiling(shmpool, o->cpu_limit, NULL);
}

void dr__shmpool_plant_free(dr__shmpool_plant *p)
{
    dr_shmpool_unref(&p->shmpool);
    dr__cond_destroy(&p->proposed);
    pthread_mutex_destroy(&p->lock);
}

/* --- knobs --- */

double dr__shmpool_plant_get_locked(const dr__shmpool_plant *p, int knob)
{
    if (knob == DR_KNOB_PREFETCH_BYTES)
        return (double)dr__shmpool_bytes(p->shmpool);
    if (knob == DR_KNOB_LANE_THRESHOLD)
        return dr__shmpool_lane(p->shmpool);
    if (knob == DR_KNOB_CPU_CEILING)
        return dr__shmpool_ceiling(p->shmpool);
    return knob == DR_KNOB_WORKERS    ? p->workers
           : knob == DR_KNOB_PREFETCH ? p->prefetch
           : knob == DR_KNOB_PRIORITY ? p->priority
                                      : 0;
}

double dr__shmpool_plant_get(dr__shmpool_plant *p, int knob)
{
    if (knob >= 0 && knob < DR_N_KNOBS && shmpool_knobs >> knob & 1)
        return dr__shmpool_plant_get_locked(p, knob);
    pthread_mutex_lock(&p->lock);
    double value = dr__shmpool_plant_get_locked(p, knob);
    pthread_mutex_unlock(&p->lock);
    return value;
}

/* lock */
static void make_proposal(dr__shmpool_plant *p)
{
    p->proposals++;
    dr__cond_broadcast(&p->proposed);
}

/* lock; the shmpool's lock is taken inside it */
static void store_value(dr__shmpool_plant *p, int knob, double value, bool by_user)
{
    if (knob == DR_KNOB_PREFETCH_BYTES) {
        dr__shmpool_set_bytes(p->shmpool, (uint64_t)value);
        return;
    }
    if (knob == DR_KNOB_LANE_THRESHOLD) {
        dr__shmpool_set_lane(p->shmpool, value);
        return;
    }
    if (knob == DR_KNOB_CPU_CEILING) {
        dr_shmpool_set_ceiling(p->shmpool, value, NULL); /* the value is allowed */
        return;
    }
    double *place = knob == DR_KNOB_WORKERS ? &p->workers : knob == DR_KNOB_PREFETCH ? &p->prefetch : &p->priority;
    const bool is_new = *place != value;
    *place = value;
    if (is_new && !by_user && knob != DR_KNOB_PREFETCH)
        make_proposal(p);
}

/* lock: p->trace is borrowed and reset under it when the controller is stopped */
static void trace_knob(dr__shmpool_plant *p, int knob)
{
    dr__trace_set(p->trace, dr_knob_name(knob), dr__shmpool_plant_get_locked(p, knob));
}

dr_status dr__shmpool_plant_set(dr__shmpool_plant *p, int knob, double value, bool by_user, dr_error *err)
{
    if (knob < 0 || knob >= DR_N_KNOBS || !(knobs >> knob & 1))
        return dr__fail(err, DR_ERR_ARG, "worker processes have no knob \"%s\"", dr_knob_name(knob));
    const dr_plant plant = dr__shmpool_plant_of(p);
    const double most = by_user && knob == DR_KNOB_WORKERS ? DR__SHMPOOL_WORKERS : plant.most[knob];
    if (!(value >= plant.least[knob] && value <= most))
        return dr__fail(err, DR_ERR_ARG, "%s must be %g to %g, got %g", dr_knob_name(knob), plant.least[knob], most,
                        value);
    pthread_mutex_lock(&p->lock);
    const bool user_pinned = !by_user && p->pinned >> knob & 1;
    p->pinned |= by_user ? 1u << knob : 0;
    if (!user_pinned) {
        store_value(p, knob, knob == DR_KNOB_PREFETCH || knob == DR_KNOB_WORKERS ? floor(value + 0.5) : value, by_user);
        trace_knob(p, knob);
    }
    pthread_mutex_unlock(&p->lock);
    return user_pinned ? dr__fail(err, DR_ERR_STATE, "it was just set by the user") : DR_OK;
}

/* --- CPU of the processes --- */

/* CPU time of a process in seconds; 0 if it has ended. */
static double read_cpu(int pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void update_delay(dr__shmpool_plant *p, struct dr__process_usage *usage, int pid)
{
    double s;
    if (!pid || !p->tells_delay || !read_delay(pid, &s))
        return;
    p->delay += s > usage->delay ? s - usage->delay : 0;
    usage->delay = DR_MAX(s, usage->delay);
}

static void update_cpu(dr__shmpool_plant *p, int worker, int pid)
{
    struct dr__process_usage *usage = &p->usage[worker];
    if (pid != usage->pid) {
        *usage = (struct dr__process_usage){ .pid = pid };
        if (pid)
            dr_monitor_watch(p->monitor, pid, NULL);
    }
    const double s = pid ? read_cpu(pid) : 0;
    p->cpu += s > usage->s ? s - usage->s : 0;
    usage->s = DR_MAX(s, usage->s);
    update_delay(p, usage, pid);
}

/* --- the plant --- */

static void plant_flow(void *user, double flow[DR_N_FLOWS])
{
    dr__shmpool_plant *p = user;
    dr_shmpool_worker_state at;
    dr_shmpool_flow(p->shmpool, flow);
    for (int worker = 0; worker < DR__SHMPOOL_WORKERS && dr_shmpool_worker_at(p->shmpool, worker, &at, NULL) == DR_OK;
         worker++)
        if (at.pid || p->usage[worker].pid)
            update_cpu(p, worker, at.pid);
    flow[DR_FLOW_CPU] = p->cpu;
    flow[DR_FLOW_DELAY] = p->delay;
    flow[DR_FLOW_BYTES_LIMIT] = p->memory_limit; /* not the knob's value, which could then never rise */
}

static void plant_spreads(void *user, dr_spread spreads[DR_N_SPREADS])
{
    dr__shmpool_spreads(((dr__shmpool_plant *)user)->shmpool, spreads);
}

/* A change of the function is also written to the trace. */
static void plant_waits_in(void *user, char where[DR_MAX_WHERE])
{
    dr__shmpool_plant *p = user;
    dr_shmpool_blocked_time places[DR_SHMPOOL_MAX_WAITS];
    if (!dr_shmpool_waits(p->shmpool, places) || !strcmp(where, places[0].where))
        return;
    memcpy(where, places[0].where, DR_MAX_WHERE);
    json_t *name = json_string(where);
    char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    pthread_mutex_lock(&p->lock);
    if (text)
        dr__trace_event(p->trace, "waits", "\"where\":%s", text);
    pthread_mutex_unlock(&p->lock);
    free(text);
    json_decref(name);
}

static double plant_get(void *user, int knob)
{
    return dr__shmpool_plant_get(user, knob);
}

static dr_status plant_set(void *user, int knob, double value, dr_error *err)
{
    return dr__shmpool_plant_set(user, knob, value, false, err);
}

dr_plant dr__shmpool_plant_of(dr__shmpool_plant *p)
{
    return (dr_plant){
        .user = p,
        .knobs = knobs,
        .least = { [DR_KNOB_WORKERS] = 1,
                   [DR_KNOB_PREFETCH] = 1,
                   [DR_KNOB_LANE_THRESHOLD] = 1,
                   [DR_KNOB_PRIORITY] = -1 },
        .most = { [DR_KNOB_WORKERS] = p->most_workers,
                  [DR_KNOB_PREFETCH] = 64,
                  [DR_KNOB_PREFETCH_BYTES] = p->memory_limit,
                  [DR_KNOB_LANE_THRESHOLD] = 1000,
                  [DR_KNOB_CPU_CEILING] = dr__knob_row_of(DR_KNOB_CPU_CEILING)->most },
        .flow = plant_flow,
        .get = plant_get,
        .set = plant_set,
        .spreads = plant_spreads,
        .tells_delay = p->tells_delay,
        .waits_in = plant_waits_in,
    };
}

void dr__shmpool_plant_facts(dr__shmpool_plant *p, dr__pipeline_facts *out)
{
    double flow[DR_N_FLOWS] = { 0 };
    const uint64_t now = dr__now_ns();
    dr_shmpool_flow(p->shmpool, flow);
    const double s = (double)(now - p->before_ns) * 1e-9, *before = p->before;
    const double batches = flow[DR_FLOW_BATCHES] - before[DR_FLOW_BATCHES];
    const double worked = flow[DR_FLOW_WORKED] - before[DR_FLOW_WORKED];
    out->queue_fill[DR__STAGE_BATCH] =
        DR_MIN(flow[DR_FLOW_READY] / DR_MAX(dr__shmpool_plant_get(p, DR_KNOB_PREFETCH), 1), 1);
    out->in_flight_bytes = flow[DR_FLOW_BYTES];
    out->in_flight_limit = flow[DR_FLOW_BYTES_LIMIT] > 0 ? flow[DR_FLOW_BYTES_LIMIT] : p->memory_limit;
    if (p->before_ns && s > 0) {
        out->consumer_wait = DR_MIN((flow[DR_FLOW_WAIT] - before[DR_FLOW_WAIT]) / s, 1);
        if (worked > 0)
            out->service_ns[DR__STAGE_DECODE] = (flow[DR_FLOW_WORK] - before[DR_FLOW_WORK]) / worked * 1e9;
        if (batches > 0)
            out->batch_latency_ns = (flow[DR_FLOW_LATENCY] - before[DR_FLOW_LATENCY]) / batches * 1e9;
    }
    memcpy(p->before, flow, sizeof flow);
    p->before_ns = now;
}

bool dr__shmpool_plant_consumer_pauses(dr__shmpool_plant *p)
{
    const uint64_t left = atomic_load(&p->shmpool->board->consumer_left_ns), now = dr__now_ns();
    const double idle = left && now > left ? (double)(now - left) * 1e-9 : 0;
    const double steps = p->before[DR_FLOW_BATCHES] - 1;
    if (idle < PAUSE_MS * 1e-3)
        return false;
    return steps < 1 || idle > PAUSE_STEPS * (p->before[DR_FLOW_STEP] - idle) / steps;
}
