/* adapt.c: the controller of a loader, and the loader as its plant. */
#include "loader/adapt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/loader_internal.h"
#include "loader/loader_knobs.h"
#include "loader/monitor_share.h"
#include "sched/policy.h"
#include "sched/tables.h"

enum {
    START_AFTER_MS = 200,      /* shorter runs get no controller */
    PAUSE_MS = 2000,           /* a step that is longer than this, */
    PAUSE_STEPS = 8,           /* and longer than this many mean steps, is a pause */
    WORKERS_ALWAYS_ALLOWED = 8 /* even with fewer CPUs: workers also wait for reads */
};

/* --- opening --- */

/* The knobs that the user has set. */
static uint32_t pinned_by(const dr_loader_options *o)
{
    return (o->workers >= 0 ? 1u << DR_KNOB_WORKERS : 0) | (o->prefetch > 0 ? 1u << DR_KNOB_PREFETCH : 0) |
           (o->cpu_limit > 0 ? 1u << DR_KNOB_CPU_CEILING : 0);
}

dr_status dr__adapt_open(dr_loader *l, const dr__limits *limits, dr_error *err)
{
    dr__adapt *a = &l->adapt;
    const dr_loader_options *o = &l->exec.o;
    dr__policy_choice policy;
    DR_TRY(dr__policy_choose(o->policy, &policy, err));
    DR_TRY(dr_weights_schedule_parse(o->weights, &a->weights, err));
    DR_TRY(dr__cpu_limit_check(o->cpu_limit, err));
    if (o->resource_monitor && !dr_monitor_interval(o->resource_monitor))
        return dr__fail(err, DR_ERR_FORKED, "the monitor belongs to the parent process; open a new one after the fork");
    a->policy = policy.def->name;
    snprintf(a->policy_text, sizeof a->policy_text, "%s", dr__policy_text(o->policy));
    a->user_monitor = o->resource_monitor ? dr_monitor_ref(o->resource_monitor) : NULL;
    a->pinned = pinned_by(o);
    a->memory_limit = dr__loader_memory(l, limits);
    a->cpu_limit = o->cpu_limit;
    if (o->cpu_limit > 0) /* applies with every policy, from the first sample on */
        dr__ceiling_set(&l->exec.knobs.ceiling, o->cpu_limit, dr__now_ns());
    if (!a->cpu_limit && o->resource_monitor && *dr__monitor_root(o->resource_monitor))
        a->cpu_limit = limits->cpus / limits->local_world; /* else the controller would use this machine's limits */
    const double most = 2 * ceil((double)limits->affinity_cpus / limits->local_world);
    a->most_workers = DR_MIN(DR_MAX(most, WORKERS_ALWAYS_ALLOWED), DR__MAX_WORKERS);
    return DR_OK;
}

int dr__adapt_workers(const dr_loader *l, const dr__limits *limits)
{
    const double limit = l->exec.o.cpu_limit;
    const int allowed = dr__limits_workers(limits);
    return limit > 0 ? DR_MAX(DR_MIN((int)(limit + 0.5), allowed), 1) : allowed;
}

/* --- the plant --- */

static void plant_flow(void *user, double flow[DR_N_FLOWS])
{
    dr__exec_flow(&((dr_loader *)user)->exec, flow);
}

static void plant_spreads(void *user, dr_spread spreads[DR_N_SPREADS])
{
    dr__exec_spreads(&((dr_loader *)user)->exec, spreads);
}

static double plant_get(void *user, int knob)
{
    return dr__knob_get(user, knob);
}

/* A decision may arrive after the user has set the same knob: the user's value stays. */
static dr_status plant_set(void *user, int knob, double value, dr_error *err)
{
    dr__adapt *a = &((dr_loader *)user)->adapt;
    pthread_mutex_lock(&a->knobs_lock);
    dr_status status = a->pinned >> knob & 1 ? dr__fail(err, DR_ERR_STATE, "it was just set by the user")
                                             : dr__knob_set(user, knob, value, err);
    pthread_mutex_unlock(&a->knobs_lock);
    return status;
}

static dr_plant plant_of(dr_loader *l)
{
    dr_plant plant = {
        .user = l,
        .knobs = (1u << DR_N_KNOBS) - 1,
        .flow = plant_flow,
        .get = plant_get,
        .set = plant_set,
        .spreads = plant_spreads,
        .works_ahead = !l->exec.o.pushed_order,
    };
    for (int i = 0; i < DR_N_KNOBS; i++) {
        plant.least[i] = dr__knob_row_of(i)->least;
        plant.most[i] = dr__knob_row_of(i)->most;
    }
    plant.least[DR_KNOB_WORKERS] = 1; /* with 0 the consumer would have to work itself */
    plant.most[DR_KNOB_WORKERS] = l->adapt.most_workers;
    plant.least[DR_KNOB_PREFETCH] = DR_MAX(plant.least[DR_KNOB_PREFETCH], l->adapt.least_prefetch);
    return plant;
}

/* --- pauses --- */

/* Whether the consumer seems to pause: its step is far longer than usual, not only long. */
static bool seems_to_pause(dr__exec *e, uint64_t idle_ns)
{
    double flow[DR_N_FLOWS] = { 0 };
    if (idle_ns < PAUSE_MS * 1000000ull)
        return false;
    dr__exec_flow(e, flow);
    const double idle = (double)idle_ns * 1e-9, steps = flow[DR_FLOW_BATCHES] - 1;
    return steps < 1 || idle > PAUSE_STEPS * (flow[DR_FLOW_STEP] - idle) / steps;
}

/* Runs in the monitor's thread, before the controller does. */
static void report_to_monitor(void *user, dr__pipeline_facts *out)
{
    dr_loader *l = user;
    const uint64_t idle_ns = dr__exec_idle_ns(&l->exec);
    const bool away = idle_ns == UINT64_MAX;
    dr_controller_hold(l->adapt.controller, away);
    dr_controller_pause(l->adapt.controller,
                        !away && (atomic_load(&l->adapt.pauses) > 0 || seems_to_pause(&l->exec, idle_ns)));
    dr__facts_fill(&l->adapt.facts, out);
}

dr_status dr_loader_set_weights(dr_loader *l, const char *weights, dr_error *err)
{
    dr_weights_schedule schedule;
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(dr_weights_schedule_parse(weights, &schedule, err));
    pthread_mutex_lock(&l->lock);
    l->adapt.weights = schedule;
    if (l->adapt.controller)
        dr_controller_set_schedule(l->adapt.controller, &schedule);
    pthread_mutex_unlock(&l->lock);
    return DR_OK;
}

dr_status dr_loader_pause(dr_loader *l, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    atomic_fetch_add(&l->adapt.pauses, 1);
    return DR_OK;
}

dr_status dr_loader_resume(dr_loader *l, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    int pauses = atomic_load(&l->adapt.pauses);
    do
        if (pauses == 0)
            return dr__fail(err, DR_ERR_STATE, "dr_loader_resume: the loader is not paused");
    while (!atomic_compare_exchange_weak(&l->adapt.pauses, &pauses, pauses - 1));
    return DR_OK;
}

/* --- running --- */

static bool is_off(const char *variable)
{
    const char *text = getenv(variable);
    return text && !strcmp(text, "off");
}

static dr_status open_controller(dr_loader *l, dr_error *err)
{
    dr__adapt *a = &l->adapt;
    dr_controller_options o;
    dr_controller_defaults(&o);
    o.policy = a->policy_text;
    pthread_mutex_lock(&a->knobs_lock);
    o.pinned = a->pinned;
    pthread_mutex_unlock(&a->knobs_lock);
    o.cpu_limit = a->cpu_limit;
    o.memory_limit = a->memory_limit;
    o.memory_granted = l->exec.o.memory_limit > 0;
    o.schedule = &a->weights;
    o.period_ms = a->period_ms;
    o.trace = l->exec.trace;
    o.live = a->live;
    const dr_plant plant = plant_of(l);
    if (a->user_monitor)
        a->monitor = dr_monitor_ref(a->user_monitor);
    else
        DR_TRY(dr__monitor_share_ref(&a->monitor, err));
    DR_TRY(dr_controller_open(a->monitor, &o, &plant, &a->controller, err));
    dr__facts_init(&a->facts, &l->exec);
    return dr__monitor_add_pipeline(a->monitor, report_to_monitor, l, &a->token, err);
}

static void stop_controller(dr_loader *l)
{
    dr__adapt *a = &l->adapt;
    if (a->token)
        dr__monitor_remove_pipeline(a->monitor, a->token);
    a->token = 0;
    dr_controller_close(&a->controller);
    dr_live_close(&a->live);
    if (a->user_monitor)
        dr_monitor_unref(&a->monitor);
    else
        dr__monitor_share_unref(&a->monitor);
}

static void start_controller(dr_loader *l)
{
    dr__adapt *a = &l->adapt;
    dr_error err = { 0 };
    a->start_tried = true;
    a->live = is_off("DRAPPS_LIVE") ? NULL : dr_live_open(l->exec.set->name, a->policy);
    if (!strcmp(a->policy, "fixed") && !a->live && !a->user_monitor && !l->exec.trace) /* nothing reads it */
        return;
    if (open_controller(l, &err) == DR_OK)
        return;
    snprintf(a->why, sizeof a->why, "%.*s", (int)sizeof a->why - 1, err.text);
    stop_controller(l);
}

void dr__adapt_start_if_due(dr_loader *l)
{
    dr__adapt *a = &l->adapt;
    if (a->start_tried || l->exec.o.reference)
        return;
    dr__pool_lock();
    const int workers = l->exec.knobs.workers;
    dr__pool_unlock();
    if (workers == 0)
        return;
    const uint64_t now = dr__now_ns();
    a->first_epoch_ns = a->first_epoch_ns ? a->first_epoch_ns : now;
    if (a->user_monitor || l->exec.trace || now - a->first_epoch_ns >= START_AFTER_MS * 1000000ull)
        start_controller(l);
}

dr_status dr__adapt_set(dr_loader *l, int knob, double value, dr_error *err)
{
    dr__adapt *a = &l->adapt;
    pthread_mutex_lock(&a->knobs_lock);
    dr_status status = dr__knob_set(l, knob, value, err);
    if (status == DR_OK)
        a->pinned |= 1u << knob;
    pthread_mutex_unlock(&a->knobs_lock);
    pthread_mutex_lock(&l->lock);
    if (status == DR_OK && a->controller)
        dr_controller_pin(a->controller, knob, true, NULL);
    pthread_mutex_unlock(&l->lock);
    return status;
}

void dr__adapt_close(dr_loader *l)
{
    stop_controller(l);
    dr_monitor_unref(&l->adapt.user_monitor);
}

/* --- reporting --- */

size_t dr_loader_decisions(dr_loader *l, uint64_t after, dr_decision *out, size_t cap)
{
    if (dr__loader_check(l, NULL) != DR_OK)
        return 0;
    pthread_mutex_lock(&l->lock);
    size_t n = l->adapt.controller ? dr_controller_decisions(l->adapt.controller, after, out, cap) : 0;
    pthread_mutex_unlock(&l->lock);
    return n;
}

static json_t *number(double value)
{
    return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

void dr__adapt_stats(dr_loader *l, json_t *stats)
{
    dr_decision last = { 0 };
    json_t *knobs = json_object();
    for (int k = 0; k < DR_N_KNOBS; k++)
        json_object_set_new(knobs, dr_knob_name(k), number(dr__knob_get(l, k)));
    dr_loader_decisions(l, 0, &last, 1);
    json_object_set_new(stats, "policy", json_string(l->adapt.policy));
    json_object_set_new(stats, "knobs", knobs);
    json_object_set_new(stats, "decisions", json_integer((json_int_t)last.number));
}

void dr__adapt_explain(dr_loader *l, char *text, size_t size)
{
    const dr__adapt *a = &l->adapt;
    pthread_mutex_lock(&l->lock);
    if (l->exec.o.reference)
        snprintf(text, size, "policy: none in reference mode\n");
    else
        snprintf(text, size, "policy: %s%s%s%s\n", a->policy, a->why[0] ? " (does not run: " : "", a->why,
                 a->why[0] ? ")" : "");
    pthread_mutex_unlock(&l->lock);
}
