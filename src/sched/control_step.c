/* control_step.c: when a decision is due, and how it is made. */
#include "sched/control_step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "sched/prefetch_cover.h"
#include "sched/reward.h"
#include "sched/tables.h"

static const double EARLY = 0.3;   /* seconds: the first decision, and the least time between two */
static const double ALARM = 0.15;  /* seconds for which a sudden change must last: then the newest ticks are all new */
static const double SUDDEN = 0.25; /* of the quota, or of the demand: what changed by more does not wait */
static const double OTHERS = 0.15; /* of the CPUs: the same for others' load, which is seen shrunk by our own */
static const double STARVED = 0.9; /* share of time that a consumer waits: of its demand little is seen then */
enum { MIN_BATCHES = 4 };          /* in a short window: fewer say nothing about demand */

dr_status dr__control_init(dr__control *c, const dr__policy_choice *policy, const dr__terms_of_use *use, int period_ms,
                           dr_error *err)
{
    memset(c, 0, sizeof *c);
    c->policy = *policy;
    c->use = *use;
    c->period_ns = (uint64_t)period_ms * 1000000u;
    c->state = dr__alloc_zero(1, DR_MAX(policy->def->state_bytes, 1));
    return c->state ? DR_OK
                    : dr__fail(err, DR_ERR_NOMEM, "policy %s: no memory for %zu bytes", policy->def->name,
                               policy->def->state_bytes);
}

void dr__control_free(dr__control *c)
{
    dr__free(c->state);
    c->state = NULL;
}

void dr__control_pause(dr__control *c)
{
    c->begun = false;
    c->n_recent = 0;
    c->alarm_ns = 0;
    dr__guard_pause(&c->guard);
}

/* --- when --- */

/* The newest ticks, over at least EARLY seconds and none from before the last decision; false: not yet. */
static bool short_window(const dr__control *c, dr__window *out)
{
    uint64_t now_ns = c->window.last.time_ns, kept = DR_MIN(c->n_recent, DR__RECENT), back = 0;
    while (back + 1 < kept &&
           (double)(now_ns - c->recent[(c->n_recent - 1 - back) % DR__RECENT].time_ns) * 1e-9 < EARLY)
        back++;
    const dr__tick *first = &c->recent[(c->n_recent - 1 - back) % DR__RECENT];
    if (back < 2 || first->time_ns < c->window.first.time_ns)
        return false;
    dr__window_begin(out, first);
    for (uint64_t i = c->n_recent - back; i < c->n_recent; i++)
        dr__window_add(out, &c->recent[i % DR__RECENT]);
    return true;
}

static bool moved(double before, double now, double by)
{
    return fabs(now - before) > by;
}

/* Whether the newest ticks differ clearly from what the last decision saw. */
static bool is_sudden(const dr__control *c, const dr__observation *o)
{
    bool our_own = c->more_workers * (o->foreign_cpus - c->last_foreign) < 0; /* we took from them, or gave back */
    if ((!our_own && moved(c->last_foreign, o->foreign_cpus, OTHERS * o->machine_cpus)) ||
        moved(c->last_quota, o->quota_cpus, SUDDEN * c->last_quota))
        return true;
    return o->batches >= MIN_BATCHES && c->last_demand > 0 && o->demand > 0 && o->wait < STARVED &&
           moved(c->last_demand, o->demand, SUDDEN * c->last_demand);
}

/* Whether to decide now; then *o is what to decide upon. */
static bool is_due(dr__control *c, const double knob[DR_N_KNOBS], dr__observation *o)
{
    double seconds = dr__window_seconds(&c->window);
    if (c->pause.silent) /* whether that is a pause is not known yet */
        return false;
    bool flows = dr__window_went(&c->window, DR_FLOW_BATCHES) >= 1 || c->window.last.flow[DR_FLOW_CONSUMERS] > 0;
    bool first = c->n_decisions == 0 && seconds >= EARLY && dr__window_went(&c->window, DR_FLOW_BATCHES) >= 2;
    if (first || (c->window.n_ticks > 0 && flows && seconds * 1e9 + 1e6 >= (double)c->period_ns)) {
        dr__window_observe(&c->window, &c->use, knob, o);
        return true;
    }
    dr__window now;
    if (c->n_decisions == 0 || !short_window(c, &now))
        return false;
    dr__window_observe(&now, &c->use, knob, o);
    o->sudden = is_sudden(c, o);
    if (!o->sudden || !c->alarm_ns)
        c->alarm_ns = o->sudden ? o->time_ns : 0;
    bool reweighed = memcmp(&c->last_weights, &c->use.weights, sizeof c->last_weights) != 0;
    return reweighed || (o->sudden && (double)(o->time_ns - c->alarm_ns) * 1e-9 >= ALARM);
}

static void take_tick(dr__control *c, const dr__tick *tick)
{
    if (dr__pause_note(&c->pause, tick))
        dr__control_pause(c);
    if (c->begun)
        dr__window_add(&c->window, tick);
    else
        dr__window_begin(&c->window, tick);
    c->begun = true;
    c->recent[c->n_recent++ % DR__RECENT] = *tick;
}

/* --- what --- */

static int count_bits(uint32_t bits)
{
    int n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

static void fill_decision(dr__control *c, const dr__observation *o, const dr__proposal *proposal, dr_decision *d)
{
    *d = (dr_decision){ .time_ns = o->time_ns, .number = c->decided + ++c->n_decisions, .bound = proposal->bound };
    memcpy(d->weight, c->use.weights.of, sizeof d->weight);
    memcpy(d->reason, proposal->reason, sizeof d->reason);
    for (int i = 0; i < DR_N_KNOBS; i++) {
        if (!dr__has_knob(o, i))
            continue;
        d->before[i] = o->knob[i];
        d->after[i] = proposal->knob[i];
        if (d->after[i] != d->before[i])
            d->changed |= 1u << i;
    }
    memcpy(d->term, o->term, sizeof d->term);
    d->reward = o->reward;
}

/* What is left of a pause's surplus is added to the window, whatever the policy and the guard say of the window. */
static void add_surplus(dr__control *c, const dr__tick *tick, dr_decision *d)
{
    const uint32_t bit = 1u << DR_KNOB_PREFETCH;
    double before = floor(c->pause.surplus), left = dr__pause_left(&c->pause, tick);
    if (before <= 0)
        return;
    d->before[DR_KNOB_PREFETCH] += before;
    d->after[DR_KNOB_PREFETCH] = c->pause.set_to =
        DR_MIN(d->after[DR_KNOB_PREFETCH] + left, c->use.most[DR_KNOB_PREFETCH]);
    c->pause.surplus = DR_MIN(c->pause.surplus, c->pause.set_to);
    d->changed = d->after[DR_KNOB_PREFETCH] != d->before[DR_KNOB_PREFETCH] ? d->changed | bit : d->changed & ~bit;
}

static void tell_of_pause(dr__control *c, dr_decision *d)
{
    size_t n = strlen(d->reason);
    if (c->pause.lasted > 0)
        snprintf(d->reason + n, sizeof d->reason - n, " The consumer paused for %.1f s.", c->pause.lasted);
    c->pause.lasted = 0;
}

static void remember(dr__control *c, const dr__observation *o, const dr_decision *d)
{
    int n = count_bits(c->use.knobs);
    c->turned = n ? (double)count_bits(d->changed) / n : 0;
    c->more_workers = d->after[DR_KNOB_WORKERS] - d->before[DR_KNOB_WORKERS];
    c->last_foreign = o->foreign_cpus;
    c->last_quota = o->quota_cpus;
    c->last_weights = c->use.weights;
    if (o->demand > 0)
        c->last_demand = o->demand;
    c->alarm_ns = 0;
    dr__window_begin(&c->window, &c->recent[(c->n_recent - 1) % DR__RECENT]);
}

static void begin_proposal(const dr__observation *o, dr__proposal *proposal)
{
    *proposal = (dr__proposal){ .bound = DR_BOUND_UNKNOWN };
    memcpy(proposal->knob, o->knob, sizeof proposal->knob);
}

/* The reward of the observed time, for the policy and for the decision's record. */
static void measure_reward(const dr__control *c, dr__observation *o)
{
    dr__terms_measure(o, c->turned, o->term);
    o->reward = dr__reward_of(o->term, c->use.weights.of);
}

/* The reward without the cost of turning knobs: by that a change is judged. */
static double plain_reward(const dr__control *c, const dr__observation *o)
{
    double term[DR_N_TERMS];
    dr__terms_measure(o, 0, term);
    return dr__reward_of(term, c->use.weights.of);
}

static void decide(dr__control *c, const dr__observation *o, dr_decision *d)
{
    dr__proposal proposal;
    double reward = plain_reward(c, o);
    begin_proposal(o, &proposal);
    c->policy.def->decide(c->state, c->policy.param, o, &proposal);
    proposal.reason[sizeof proposal.reason - 1] = 0;
    bool undone = dr__guard_judge(&c->guard, o, reward, &proposal);
    bool limited = dr__guard_limit(&c->guard, o, &proposal);
    fill_decision(c, o, &proposal, d);
    d->guarded = undone || limited;
    dr__guard_turned(&c->guard, o, d->after, d->changed, reward, !undone);
}

/* --- a tick --- */

bool dr__control_step(dr__control *c, const dr_snapshot *snapshot, const double flow[DR_N_FLOWS],
                      const double knobs[DR_N_KNOBS], dr_decision *out)
{
    dr__tick tick;
    dr__observation o;
    dr__proposal proposal;
    double knob[DR_N_KNOBS];
    memcpy(knob, knobs, sizeof knob);
    dr__pause_without(&c->pause, &c->use, knob);
    dr__tick_fill(&tick, snapshot, flow, &c->quota_cpus);
    if (c->pause.resting)
        c->pause.lasted = (double)(tick.time_ns - c->pause.since_ns) * 1e-9;
    c->pause.resting = false;
    take_tick(c, &tick);
    if (c->window.n_ticks < 1)
        return false;
    bool due = is_due(c, knob, &o);
    if (!due)
        dr__window_observe(&c->window, &c->use, knob, &o);
    measure_reward(c, &o);
    o.knob[DR_KNOB_PREFETCH] += floor(c->pause.surplus); /* the watchdog takes that, too */
    begin_proposal(&o, &proposal);
    if (c->policy.def != &dr__policy_fixed && dr__guard_watch(&c->guard, &tick, &o, &proposal)) {
        fill_decision(c, &o, &proposal, out);
        out->guarded = true;
        c->pause.surplus = 0;
        dr__guard_turned(&c->guard, &o, out->after, out->changed, 0, false);
    } else if (due) {
        o.knob[DR_KNOB_PREFETCH] = knob[DR_KNOB_PREFETCH];
        decide(c, &o, out);
    } else {
        return false;
    }
    remember(c, &o, out);
    add_surplus(c, &tick, out);
    tell_of_pause(c, out);
    return true;
}

/* Batches that are made in the pause: a decision where there is room for more than the window's. */
static bool fill_up(dr__control *c, const dr__tick *tick, const dr__observation *o, dr_decision *out)
{
    dr__proposal proposal;
    double room = o->use.works_ahead ? dr__cover_room(o) : 0, now = o->knob[DR_KNOB_PREFETCH];
    begin_proposal(o, &proposal);
    if (c->n_decisions == 0 || c->policy.def == &dr__policy_fixed || !dr__may_turn(o, DR_KNOB_PREFETCH) ||
        tick->time_ns < c->guard.memory_ban_ns || room <= now)
        return false;
    proposal.bound = DR_BOUND_CONSUMER;
    proposal.knob[DR_KNOB_PREFETCH] = c->pause.set_to = room;
    c->pause.surplus += room - now;
    c->pause.taken = tick->flow[DR_FLOW_BATCHES];
    snprintf(proposal.reason, sizeof proposal.reason,
             "The consumer pauses: up to %g batches are made meanwhile, as far as memory allows.", room);
    fill_decision(c, o, &proposal, out);
    return true;
}

/* The knobs as they are, surplus and all: in a pause memory is watched as ever. */
bool dr__control_rest(dr__control *c, const dr_snapshot *snapshot, const double flow[DR_N_FLOWS],
                      const double knob[DR_N_KNOBS], dr_decision *out)
{
    dr__tick tick;
    dr__observation o;
    dr__proposal proposal;
    bool begins = !c->pause.resting;
    dr__tick_fill(&tick, snapshot, flow, &c->quota_cpus);
    if (begins)
        take_tick(c, &tick);
    else
        dr__window_begin(&c->window, &tick);
    dr__window_add(&c->window, &tick);
    dr__window_observe(&c->window, &c->use, knob, &o);
    measure_reward(c, &o);
    if (begins)
        c->pause.since_ns = tick.time_ns;
    c->pause.resting = true;
    begin_proposal(&o, &proposal);
    bool decided = false;
    if (c->policy.def != &dr__policy_fixed && dr__guard_watch(&c->guard, &tick, &o, &proposal)) {
        fill_decision(c, &o, &proposal, out);
        out->guarded = decided = true;
        c->pause.surplus = 0;
    } else if (begins) {
        decided = fill_up(c, &tick, &o, out);
    }
    dr__control_pause(c);
    return decided;
}
