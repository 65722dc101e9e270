/* shmpool_controller.c: the controller of a shmpool, with its plant, monitor and live view, and the proposals that the
 * main process waits for. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "loader/shmpool_plant.h"
#include "loader/monitor_share.h"
#include "sched/policy.h"
#include "sched/tables.h"

enum { MAX_KEPT = 64 }; /* decisions that can be read after the controller was stopped */

struct dr_shmpool_controller {
    dr__shmpool_plant plant;
    dr_monitor *user_monitor; /* a reference; NULL: the shared monitor */
    dr_live *live;
    dr_controller *controller;
    int token;
    unsigned
        generation; /* fork generation of the process that opened it: a child has neither its threads nor its locks */
    bool held, paused; /* plant.lock: by the main process */
    dr_decision last[MAX_KEPT];
    size_t n_last;
};

void dr_shmpool_adapt_defaults(dr_shmpool_adapt_options *options)
{
    *options = (dr_shmpool_adapt_options){ .size = sizeof *options, .workers = 1, .prefetch = 2 };
}

static bool is_ours(const dr_shmpool_controller *p)
{
    return p->generation == dr__fork_generation();
}

static dr_status check(const dr_shmpool_adapt_options *o, dr_error *err)
{
    dr__policy_choice policy;
    if (o->size != sizeof *o)
        return dr__fail(err, DR_ERR_ARG,
                        "dr_shmpool_adapt_options.size must be %zu, got %zu: call dr_shmpool_adapt_defaults first",
                        sizeof *o, o->size);
    DR_TRY(dr__cpu_limit_check(o->cpu_limit, err));
    if (o->monitor && !dr_monitor_interval(o->monitor))
        return dr__fail(err, DR_ERR_FORKED, "the monitor belongs to the parent process; open a new one after the fork");
    return dr__policy_choose(o->policy, &policy, err);
}

/* Runs in the monitor's thread, before the controller does. */
static void report_to_monitor(void *user, dr__pipeline_facts *out)
{
    dr_shmpool_controller *p = user;
    dr__shmpool_plant_facts(&p->plant, out);
    pthread_mutex_lock(&p->plant.lock);
    const bool held = p->held, paused = p->paused;
    pthread_mutex_unlock(&p->plant.lock);
    dr_controller_hold(p->controller, held);
    dr_controller_pause(p->controller, paused || dr__shmpool_plant_consumer_pauses(&p->plant));
}

static dr_status start(dr_shmpool_controller *p, const dr_shmpool_adapt_options *o, dr_error *err)
{
    dr_controller_options po;
    dr_weights_schedule weights;
    dr__policy_choice policy;
    dr_controller_defaults(&po);
    DR_TRY(dr__policy_choose(o->policy, &policy, err));
    DR_TRY(dr_weights_schedule_parse(o->weights, &weights, err));
    po.schedule = &weights;
    po.policy = o->policy;
    po.pinned = p->plant.pinned;
    po.period_ms = o->period_ms;
    po.decided = o->decided;
    po.cpu_limit = o->cpu_limit;
    po.memory_limit = (uint64_t)p->plant.memory_limit;
    po.memory_granted = o->memory_limit > 0;
    po.trace = o->trace;
    po.live = p->live = o->name ? dr_live_open(o->name, policy.def->name) : NULL;
    if (o->monitor)
        p->plant.monitor = p->user_monitor = dr_monitor_ref(o->monitor);
    else
        DR_TRY(dr__monitor_share_ref(&p->plant.monitor, err));
    const dr_plant plant = dr__shmpool_plant_of(&p->plant);
    DR_TRY(dr_controller_open(p->plant.monitor, &po, &plant, &p->controller, err));
    return dr__monitor_add_pipeline(p->plant.monitor, report_to_monitor, p, &p->token, err);
}

dr_status dr_shmpool_adapt(dr_shmpool *shmpool, const dr_shmpool_adapt_options *options, dr_shmpool_controller **out,
                           dr_error *err)
{
    *out = NULL;
    DR_TRY(check(options, err));
    dr_shmpool_controller *p = dr__alloc_zero(1, sizeof *p);
    if (!p)
        return dr__fail(err, DR_ERR_NOMEM, "shmpool: out of memory");
    p->generation = dr__fork_generation();
    dr__shmpool_plant_init(&p->plant, shmpool, options);
    dr_status status = start(p, options, err);
    if (status == DR_OK)
        *out = p;
    else
        dr_shmpool_controller_close(&p);
    return status;
}

void dr_shmpool_controller_stop(dr_shmpool_controller *p)
{
    if (!is_ours(p))
        return;
    pthread_mutex_lock(&p->plant.lock);
    const bool first = !p->plant.stopped;
    p->plant.stopped = true;
    p->plant.trace = NULL;
    dr__cond_broadcast(&p->plant.proposed);
    pthread_mutex_unlock(&p->plant.lock);
    if (!first)
        return;
    if (p->token)
        dr__monitor_remove_pipeline(p->plant.monitor, p->token);
    p->n_last = p->controller ? dr_controller_decisions(p->controller, 0, p->last, MAX_KEPT) : 0;
    pthread_mutex_lock(&p->plant.lock); /* dr_shmpool_controller_decisions reads it */
    dr_controller *controller = p->controller;
    p->controller = NULL;
    pthread_mutex_unlock(&p->plant.lock);
    dr_controller_close(&controller);
    dr_live_close(&p->live);
    if (p->user_monitor)
        dr_monitor_unref(&p->user_monitor);
    else
        dr__monitor_share_unref(&p->plant.monitor);
}

void dr_shmpool_controller_close(dr_shmpool_controller **controller)
{
    dr_shmpool_controller *p = *controller;
    *controller = NULL;
    if (!p || !is_ours(p))
        return;
    dr_shmpool_controller_stop(p);
    dr__shmpool_plant_free(&p->plant);
    dr__free(p);
}

/* --- proposals --- */

dr_status dr_shmpool_controller_wait(dr_shmpool_controller *p, int timeout_ms, dr_shmpool_proposal *proposal)
{
    dr__shmpool_plant *plant = &p->plant;
    const uint64_t end_ns = timeout_ms < 0 ? UINT64_MAX : dr__now_ns() + (uint64_t)timeout_ms * 1000000u;
    bool in_time = true;
    if (!is_ours(p))
        return DR_END;
    pthread_mutex_lock(&plant->lock);
    while (!plant->stopped && plant->proposals == proposal->number && in_time)
        in_time = dr__cond_wait(&plant->proposed, &plant->lock, end_ns);
    dr_status status = plant->stopped ? DR_END : plant->proposals == proposal->number ? DR_AGAIN : DR_OK;
    if (status == DR_OK)
        *proposal = (dr_shmpool_proposal){ plant->proposals, (int)plant->workers, (int)floor(plant->priority + 0.5) };
    pthread_mutex_unlock(&plant->lock);
    return status;
}

double dr_shmpool_controller_get(dr_shmpool_controller *p, int knob)
{
    return is_ours(p) ? dr__shmpool_plant_get(&p->plant, knob) : dr__shmpool_plant_get_locked(&p->plant, knob);
}

dr_status dr_shmpool_controller_set(dr_shmpool_controller *p, int knob, double value, dr_error *err)
{
    if (!is_ours(p))
        return dr__fail(err, DR_ERR_FORKED, "these workers belong to the parent process");
    DR_TRY(dr__shmpool_plant_set(&p->plant, knob, value, true, err));
    pthread_mutex_lock(&p->plant.lock);
    if (p->controller)
        dr_controller_pin(p->controller, knob, true, NULL);
    pthread_mutex_unlock(&p->plant.lock);
    return DR_OK;
}

void dr_shmpool_controller_watch(dr_shmpool_controller *p, int pid)
{
    if (!is_ours(p))
        return;
    pthread_mutex_lock(&p->plant.lock);
    if (!p->plant.stopped)
        dr_monitor_watch(p->plant.monitor, pid, NULL);
    pthread_mutex_unlock(&p->plant.lock);
}

void dr_shmpool_controller_hold(dr_shmpool_controller *p, bool held)
{
    if (!is_ours(p))
        return;
    pthread_mutex_lock(&p->plant.lock);
    p->held = held;
    pthread_mutex_unlock(&p->plant.lock);
}

dr_status dr_shmpool_controller_set_weights(dr_shmpool_controller *p, const char *weights, dr_error *err)
{
    dr_weights_schedule schedule;
    if (!is_ours(p))
        return dr__fail(err, DR_ERR_FORKED, "these workers belong to the parent process");
    DR_TRY(dr_weights_schedule_parse(weights, &schedule, err));
    pthread_mutex_lock(&p->plant.lock);
    if (p->controller)
        dr_controller_set_schedule(p->controller, &schedule);
    pthread_mutex_unlock(&p->plant.lock);
    return DR_OK;
}

void dr_shmpool_controller_pause(dr_shmpool_controller *p, bool paused)
{
    if (!is_ours(p))
        return;
    pthread_mutex_lock(&p->plant.lock);
    p->paused = paused;
    pthread_mutex_unlock(&p->plant.lock);
}

/* --- decisions --- */

static size_t kept_decisions(const dr_shmpool_controller *p, uint64_t after, dr_decision *out, size_t cap)
{
    size_t first = 0, n;
    while (first < p->n_last && p->last[first].number <= after)
        first++;
    n = p->n_last - first;
    first += n > cap ? n - cap : 0;
    n = n > cap ? cap : n;
    memcpy(out, p->last + first, n * sizeof *out);
    return n;
}

size_t dr_shmpool_controller_decisions(dr_shmpool_controller *p, uint64_t after, dr_decision *out, size_t cap)
{
    if (!is_ours(p))
        return 0;
    pthread_mutex_lock(&p->plant.lock);
    size_t n =
        p->controller ? dr_controller_decisions(p->controller, after, out, cap) : kept_decisions(p, after, out, cap);
    pthread_mutex_unlock(&p->plant.lock);
    return n;
}
