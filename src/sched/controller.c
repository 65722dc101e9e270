/* controller.c: runs control steps on the ticks of a monitor, sets the knobs of a plant, keeps decisions.
 *
 * The monitor's thread calls `tick`, which owns the control.  What other threads say (hold, pin, weights) is kept under
 * `lock` and taken over at the next tick; the plant's callbacks run without it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/thread.h"
#include "sched/control_step.h"
#include "sched/tables.h"

enum { N_KEPT = 64, MIN_PERIOD_MS = 100, MAX_PERIOD_MS = 60000, PERIOD_MS = 1000 };
enum { FIRST_COOLDOWN = 10, LONGEST_COOLDOWN = 640 }; /* decisions until a knob that could not be set is tried again */

struct dr_controller {
    dr_monitor *monitor; /* owns a reference */
    int token;
    dr_plant plant;
    dr_trace *trace;
    dr_live *live;
    dr__control control; /* of the monitor's thread */
    struct {
        int rest;          /* after it could not be set; doubles while that goes on.  0: it can be */
        int left;          /* decisions of it */
    } refused[DR_N_KNOBS]; /* of the monitor's thread */
    bool resting;          /* of the monitor's thread */

    pthread_mutex_t policy_lock; /* for the state of the policy: held for a control step, and while it is saved */

    pthread_mutex_t lock; /* for what follows */
    bool held, paused;
    uint32_t pinned;
    dr_weights_schedule schedule;
    dr_decision kept[N_KEPT];
    uint64_t n_kept; /* ever put in */
    bool last_tells; /* the newest stays */
};

/* --- the tick --- */

/* Bits of knobs that could not be set a moment ago. */
static uint32_t refused_now(const dr_controller *p)
{
    uint32_t bits = 0;
    for (int i = 0; i < DR_N_KNOBS; i++)
        bits |= p->refused[i].left > 0 ? 1u << i : 0;
    return bits;
}

/* Local time. */
static double second_of_day(void)
{
    struct timespec now;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    return 3600 * local.tm_hour + 60 * local.tm_min + local.tm_sec + (double)now.tv_nsec * 1e-9;
}

/* What others said since the last tick. */
static void take_over(dr_controller *p, bool *held, bool *paused)
{
    pthread_mutex_lock(&p->lock);
    *held = p->held;
    *paused = p->paused;
    p->control.use.pinned = p->pinned | refused_now(p);
    dr__terms_of_use *use = &p->control.use;
    use->next_weights_in = dr_weights_at(&p->schedule, second_of_day(), &use->weights, &use->next_weights);
    pthread_mutex_unlock(&p->lock);
}

static void read_plant(dr_controller *p, double flow[DR_N_FLOWS], double knob[DR_N_KNOBS])
{
    memset(flow, 0, DR_N_FLOWS * sizeof *flow);
    p->plant.flow(p->plant.user, flow);
    for (int i = 0; i < DR_N_KNOBS; i++)
        knob[i] = p->plant.knobs >> i & 1 ? p->plant.get(p->plant.user, i) : 0;
    if (p->plant.waits_in)
        p->plant.waits_in(p->plant.user, p->control.use.waits_in);
}

/* Turns a knob.  One that cannot be set is left alone for a while: what was in the way may be gone then. */
static bool turn(dr_controller *p, int knob, double value, dr_error *err)
{
    const bool done = p->plant.set(p->plant.user, knob, value, err) >= 0;
    int *rest = &p->refused[knob].rest;
    *rest = done ? 0 : *rest ? DR_MIN(2 * *rest, LONGEST_COOLDOWN) : FIRST_COOLDOWN;
    p->refused[knob].left = *rest;
    return done;
}

/* Whether there is something to tell of. */
static bool carry_out(dr_controller *p, dr_decision *d)
{
    bool tell = d->changed != 0 || p->control.n_decisions == 1;
    for (int i = 0; i < DR_N_KNOBS; i++) {
        dr_error err = { 0 };
        p->refused[i].left -= p->refused[i].left > 0;
        if (!(d->changed >> i & 1) || turn(p, i, d->after[i], &err))
            continue;
        d->changed &= ~(1u << i);
        d->after[i] = d->before[i];
        d->guarded = true;
        size_t n = strlen(d->reason);
        snprintf(d->reason + n, sizeof d->reason - n, " It could not turn %s: %s.", dr_knob_name(i), err.text);
    }
    return tell;
}

/* One that has nothing to tell of stays only until the next. */
static void keep(dr_controller *p, const dr_decision *d, bool tell)
{
    pthread_mutex_lock(&p->lock);
    if (p->n_kept && !p->last_tells)
        p->n_kept--;
    p->kept[p->n_kept++ % N_KEPT] = *d;
    p->last_tells = tell;
    pthread_mutex_unlock(&p->lock);
}

static void show(dr_controller *p, const dr_snapshot *snapshot, const double *flow, const double *knob)
{
    dr_spread spreads[DR_N_SPREADS] = { { 0 } };
    if (!p->live)
        return;
    dr_live_put(p->live, snapshot, flow, DR_N_FLOWS, knob, DR_N_KNOBS);
    if (!p->plant.spreads)
        return;
    p->plant.spreads(p->plant.user, spreads);
    dr_live_spreads(p->live, spreads, DR_N_SPREADS);
}

static bool step(dr_controller *p, const dr_snapshot *snapshot, const double *flow, const double *knob, bool paused,
                 dr_decision *out)
{
    pthread_mutex_lock(&p->policy_lock);
    bool decided = paused ? dr__control_rest(&p->control, snapshot, flow, knob, out)
                          : dr__control_step(&p->control, snapshot, flow, knob, out);
    pthread_mutex_unlock(&p->policy_lock);
    return decided;
}

static void tick(void *user, const dr_snapshot *snapshot)
{
    dr_controller *p = user;
    double flow[DR_N_FLOWS], knob[DR_N_KNOBS];
    dr_decision d;
    bool held, paused;
    take_over(p, &held, &paused);
    read_plant(p, flow, knob);
    dr_trace_snapshot(p->trace, snapshot);
    dr_trace_flow(p->trace, snapshot->time_ns, flow, DR_N_FLOWS);
    show(p, snapshot, flow, knob);
    if (held && !p->resting)
        dr__control_pause(&p->control);
    p->resting = held;
    if (held || !step(p, snapshot, flow, knob, paused, &d))
        return;
    bool tell = carry_out(p, &d);
    keep(p, &d, tell);
    dr_trace_decision(p->trace, &d);
    dr_live_decision(p->live, &d);
}

/* --- opening and closing --- */

void dr_controller_defaults(dr_controller_options *options)
{
    *options = (dr_controller_options){ .size = sizeof *options };
    dr_weights_parse("step", &options->weights, NULL);
}

static dr_status check_weights(const dr_weights *w, dr_error *err)
{
    for (int i = 0; i < DR_N_TERMS; i++)
        if (!(w->of[i] >= 0) || isinf(w->of[i]))
            return dr__fail(err, DR_ERR_ARG, "controller: the weight of %s must be a number from 0, got %g",
                            dr__term_name(i), w->of[i]);
    return DR_OK;
}

static dr_status check_options(const dr_controller_options *o, dr_error *err)
{
    if (o->size != sizeof *o)
        return dr__fail(err, DR_ERR_ARG,
                        "dr_controller_options.size must be %zu, got %zu: call dr_controller_defaults first", sizeof *o,
                        o->size);
    if (o->period_ms && (o->period_ms < MIN_PERIOD_MS || o->period_ms > MAX_PERIOD_MS))
        return dr__fail(err, DR_ERR_ARG, "controller: period_ms must be 0 or %d to %d, got %d", MIN_PERIOD_MS,
                        MAX_PERIOD_MS, o->period_ms);
    if (!(o->cpu_limit >= 0) || isinf(o->cpu_limit))
        return dr__fail(err, DR_ERR_ARG, "controller: cpu_limit must be a number from 0, got %g", o->cpu_limit);
    if (!o->schedule)
        return check_weights(&o->weights, err);
    DR_TRY(check_weights(&o->schedule->otherwise, err));
    if (o->schedule->n_spans < 0 || o->schedule->n_spans > DR_MAX_SPANS)
        return dr__fail(err, DR_ERR_ARG, "controller: schedule->n_spans must be 0 to %d, got %d", DR_MAX_SPANS,
                        o->schedule->n_spans);
    for (int i = 0; i < o->schedule->n_spans; i++)
        DR_TRY(check_weights(&o->schedule->spans[i].weights, err));
    return DR_OK;
}

static dr_status check_plant(const dr_plant *plant, dr_error *err)
{
    if (!plant->flow || !plant->get || !plant->set)
        return dr__fail(err, DR_ERR_ARG, "controller: the plant lacks a callback: flow, get and set are needed");
    for (int i = 0; i < DR_N_KNOBS; i++) {
        const dr__knob_row *row = dr__knob_row_of(i);
        if (plant->knobs >> i & 1 &&
            !(plant->least[i] >= row->least && plant->least[i] <= plant->most[i] && plant->most[i] <= row->most))
            return dr__fail(err, DR_ERR_ARG, "controller: %s goes from %g to %g, allowed is %g to %g", row->name,
                            plant->least[i], plant->most[i], row->least, row->most);
    }
    return DR_OK;
}

/* Ranks of one machine share its CPUs. */
static dr__terms_of_use terms_of_use(const dr_controller_options *o, const dr_plant *plant)
{
    dr__limits limits;
    dr__limits_read("", &limits);
    dr__terms_of_use use = {
        .knobs = plant->knobs,
        .pinned = o->pinned,
        .tells_delay = plant->tells_delay,
        .works_ahead = plant->works_ahead,
        .affinity_cpus = limits.affinity_cpus,
        .cpu_limit = o->cpu_limit,
        .memory_limit = (double)o->memory_limit,
        .memory_granted = o->memory_granted,
        .weights = o->schedule ? o->schedule->otherwise : o->weights,
    };
    if (limits.local_world > 1)
        use.cpu_share = limits.cpus / limits.local_world;
    memcpy(use.least, plant->least, sizeof use.least);
    memcpy(use.most, plant->most, sizeof use.most);
    return use;
}

static dr_status start(dr_controller *p, const dr_controller_options *o, dr_error *err)
{
    dr__policy_choice policy;
    DR_TRY(dr__policy_choose(o->policy, &policy, err));
    dr__terms_of_use use = terms_of_use(o, &p->plant);
    DR_TRY(dr__control_init(&p->control, &policy, &use, o->period_ms ? o->period_ms : PERIOD_MS, err));
    if (*policy.load)
        DR_TRY(dr__policy_load_file(policy.def, p->control.state, dr__now_ns(), policy.load, err));
    p->control.decided = o->decided;
    return dr_monitor_subscribe(p->monitor, tick, p, &p->token, err);
}

static void free_controller(dr_controller *p)
{
    dr__control_free(&p->control);
    pthread_mutex_destroy(&p->policy_lock);
    pthread_mutex_destroy(&p->lock);
    dr_monitor_unref(&p->monitor);
    dr__free(p);
}

dr_status dr_controller_open(dr_monitor *monitor, const dr_controller_options *options, const dr_plant *plant,
                             dr_controller **out, dr_error *err)
{
    dr_controller_options defaults;
    dr_controller_defaults(&defaults);
    const dr_controller_options *o = options ? options : &defaults;
    *out = NULL;
    DR_TRY(check_options(o, err));
    DR_TRY(check_plant(plant, err));
    dr_controller *p = dr__alloc_zero(1, sizeof *p);
    if (!p)
        return dr__fail(err, DR_ERR_NOMEM, "controller: no memory for %zu bytes", sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->policy_lock, NULL);
    p->monitor = dr_monitor_ref(monitor);
    p->plant = *plant;
    p->trace = o->trace;
    p->live = o->live;
    p->pinned = o->pinned;
    if (o->schedule)
        p->schedule = *o->schedule;
    else
        p->schedule.otherwise = o->weights;
    dr_status status = start(p, o, err);
    if (status == DR_OK)
        *out = p;
    else
        free_controller(p);
    return status;
}

void dr_controller_close(dr_controller **controller)
{
    dr_controller *p = *controller;
    *controller = NULL;
    if (!p)
        return;
    dr_monitor_unsubscribe(p->monitor, p->token);
    free_controller(p);
}

/* --- from other threads --- */

void dr_controller_hold(dr_controller *p, bool held)
{
    pthread_mutex_lock(&p->lock);
    p->held = held;
    pthread_mutex_unlock(&p->lock);
}

void dr_controller_pause(dr_controller *p, bool paused)
{
    pthread_mutex_lock(&p->lock);
    p->paused = paused;
    pthread_mutex_unlock(&p->lock);
}

dr_status dr_controller_pin(dr_controller *p, int knob, bool pinned, dr_error *err)
{
    if (!dr_knob_name(knob))
        return dr__fail(err, DR_ERR_ARG, "controller: knob must be 0 to %d, got %d", DR_N_KNOBS - 1, knob);
    pthread_mutex_lock(&p->lock);
    p->pinned = pinned ? p->pinned | 1u << knob : p->pinned & ~(1u << knob);
    pthread_mutex_unlock(&p->lock);
    return DR_OK;
}

void dr_controller_set_weights(dr_controller *p, const dr_weights *weights)
{
    pthread_mutex_lock(&p->lock);
    p->schedule = (dr_weights_schedule){ .otherwise = *weights };
    pthread_mutex_unlock(&p->lock);
}

void dr_controller_set_schedule(dr_controller *p, const dr_weights_schedule *schedule)
{
    pthread_mutex_lock(&p->lock);
    p->schedule = *schedule;
    pthread_mutex_unlock(&p->lock);
}

dr_status dr_controller_save_policy(dr_controller *p, const char *path, dr_error *err)
{
    const dr__policy_def *def = p->control.policy.def;
    uint8_t *state = dr__alloc(DR_MAX(def->state_bytes, 1));
    if (!state)
        return dr__fail(err, DR_ERR_NOMEM, "controller: out of memory");
    pthread_mutex_lock(&p->policy_lock);
    memcpy(state, p->control.state, def->state_bytes);
    pthread_mutex_unlock(&p->policy_lock);
    dr_status status = dr__policy_save_file(def, state, dr__now_ns(), path, err);
    dr__free(state);
    return status;
}

size_t dr_controller_decisions(dr_controller *p, uint64_t after, dr_decision *out, size_t cap)
{
    size_t n = 0;
    pthread_mutex_lock(&p->lock);
    uint64_t end = p->n_kept, begin = end > N_KEPT ? end - N_KEPT : 0;
    while (begin < end && p->kept[begin % N_KEPT].number <= after)
        begin++;
    if (end - begin > cap)
        begin = end - cap;
    for (; begin < end; begin++)
        out[n++] = p->kept[begin % N_KEPT];
    pthread_mutex_unlock(&p->lock);
    return n;
}
