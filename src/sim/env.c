/* env.c: simulations as environments for reinforcement learning.
 *
 * A step is a decision and the second after it, as under a controller: the action changes the knobs (or adds to what a
 * base policy proposes), the guard keeps them in their ranges, budgets and cooldowns, ten snapshots make the window
 * that is observed next.  The reward is what really happened in that second, less the cost of turning knobs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "sched/control_step.h"
#include "sched/features.h"
#include "sched/policy.h"
#include "sim/twin.h"

enum { SNAPSHOTS = 10, MAX_CHOICES = 5 };

typedef struct one {
    dr_sim *sim; /* owned */
    void *state; /* of the base policy; owned, NULL without one */
    dr__guard guard;
    dr__window window;
    dr__observation o;
    dr__feature_memory memory;
    double quota, rewarded; /* rewarded: sum of the simulation's rewards before this step */
    uint64_t seconds;       /* and how many there were */
    double left;            /* seconds of the episode */
} one;

struct dr_sim_env {
    size_t n;
    one *at; /* owned */
    dr__policy_choice base;
    double seconds;
};

/* --- actions --- */

static const struct action {
    const char *name;
    int knob, n;
    const char *choices[MAX_CHOICES];
    double of[MAX_CHOICES];
} actions[] = {
    { "workers", DR_KNOB_WORKERS, 5, { "-2 steps", "-1 step", "keep", "+1 step", "+2 steps" }, { -2, -1, 0, 1, 2 } },
    { "readers", DR_KNOB_READERS, 3, { "half", "keep", "double" }, { -1, 0, 1 } },
    { "prefetch", DR_KNOB_PREFETCH, 3, { "/ 1.5", "keep", "x 1.5" }, { -1, 0, 1 } },
    { "cpu_ceiling", DR_KNOB_CPU_CEILING, 3, { "- 1/8", "keep", "+ 1/8" }, { -1, 0, 1 } },
    { "priority", DR_KNOB_PRIORITY, 3, { "lower", "keep", "higher" }, { -1, 0, 1 } },
    { "codec", DR_KNOB_CODEC, 3, { "less CPU", "keep", "fewer bytes" }, { -1, 0, 1 } },
    { "offload", DR_KNOB_OFFLOAD, 3, { "- 1/8", "keep", "+ 1/8" }, { -1, 0, 1 } },
};

static const double codec_order[] = { 0, 1, 3 }; /* from none to Zstandard: more CPU, fewer bytes */

static double next_codec(double now, double by)
{
    int at = 1; /* chosen: as LZ4 */
    for (int i = 0; i < (int)DR_COUNT(codec_order); i++)
        if (codec_order[i] == now)
            at = i;
    at += (int)by;
    return codec_order[DR_MIN(DR_MAX(at, 0), (int)DR_COUNT(codec_order) - 1)];
}

/* The value of a knob after a change.  A step of workers is a sixteenth of the CPUs, at least one. */
static double turned_by(const dr__observation *o, int knob, double now, double by)
{
    const double cpus = o->cpus;
    if (by == 0)
        return now;
    switch (knob) {
    case DR_KNOB_WORKERS:
        return now + by * DR_MAX(round(cpus / 16), 1);
    case DR_KNOB_READERS:
        return by > 0 ? DR_MAX(2 * now, 1) : floor(now / 2);
    case DR_KNOB_PREFETCH:
        return by > 0 ? DR_MAX(ceil(1.5 * now), now + 1) : floor(now / 1.5);
    case DR_KNOB_CPU_CEILING: {
        const double next = (now > 0 ? now : cpus) + by * cpus / 8;
        return next >= cpus ? 0 : DR_MAX(next, cpus / 8);
    }
    case DR_KNOB_CODEC:
        return next_codec(now, by);
    case DR_KNOB_OFFLOAD:
        return now + by / 8;
    default:
        return now + by;
    }
}

size_t dr_sim_env_actions(int *choices, size_t cap)
{
    for (size_t i = 0; choices && i < DR_MIN(cap, DR_COUNT(actions)); i++)
        choices[i] = actions[i].n;
    return DR_COUNT(actions);
}

size_t dr_sim_env_observation(void)
{
    return DR__N_FEATURES;
}

/* A choice that changes nothing now: "keep" always may be taken. */
static bool changes(const one *e, size_t action, int choice)
{
    const struct action *a = &actions[action];
    const double now = e->o.knob[a->knob];
    if (a->of[choice] == 0)
        return true;
    if (!dr__may_turn(&e->o, a->knob))
        return false;
    const double next = turned_by(&e->o, a->knob, now, a->of[choice]);
    return DR_MIN(DR_MAX(next, e->o.use.least[a->knob]), e->o.use.most[a->knob]) != now;
}

void dr_sim_env_mask(const dr_sim_env *env, size_t i, uint8_t *mask)
{
    for (size_t a = 0; a < DR_COUNT(actions); a++)
        for (int c = 0; c < actions[a].n; c++)
            *mask++ = changes(&env->at[i], a, c);
}

/* --- time --- */

static void add_tick(one *e, bool first)
{
    dr_snapshot snapshot;
    double flow[DR_N_FLOWS];
    dr__tick tick;
    dr_sim_snapshot(e->sim, &snapshot);
    dr__sim_flow(e->sim, flow);
    dr__tick_fill(&tick, &snapshot, flow, &e->quota);
    if (first)
        dr__window_begin(&e->window, &tick);
    else
        dr__window_add(&e->window, &tick);
}

static void pass_second(one *e)
{
    double knob[DR_N_KNOBS];
    const dr_plant plant = dr_sim_plant(e->sim);
    add_tick(e, true);
    for (int i = 0; i < SNAPSHOTS; i++) {
        dr_sim_advance(e->sim, DR__SIM_SNAPSHOT_S);
        add_tick(e, false);
    }
    for (int i = 0; i < DR_N_KNOBS; i++)
        knob[i] = plant.get(plant.user, i);
    const dr__terms_of_use use = dr__sim_terms(e->sim);
    dr__window_observe(&e->window, &use, knob, &e->o);
}

/* What was rewarded in this step. */
static double reward_of(one *e, double turned)
{
    const dr_sim *s = e->sim;
    const uint64_t n = s->n_seconds - e->seconds;
    const double sum = s->all.reward - e->rewarded;
    e->seconds = s->n_seconds;
    e->rewarded = s->all.reward;
    return (n ? sum / (double)n : 0) - e->o.use.weights.of[DR_TERM_CHANGE] * turned;
}

/* --- steps --- */

static void propose(const dr_sim_env *env, one *e, const int32_t *action, dr__proposal *proposal)
{
    *proposal = (dr__proposal){ .bound = DR_BOUND_UNKNOWN };
    memcpy(proposal->knob, e->o.knob, sizeof proposal->knob);
    if (e->state)
        env->base.def->decide(e->state, env->base.param, &e->o, proposal);
    for (size_t i = 0; i < DR_COUNT(actions); i++) {
        const struct action *a = &actions[i];
        if (action[i] >= 0 && action[i] < a->n)
            proposal->knob[a->knob] = turned_by(&e->o, a->knob, proposal->knob[a->knob], a->of[action[i]]);
    }
}

/* Returns the share of the knobs that were turned. */
static double turn_knobs(one *e, const dr__proposal *proposal)
{
    const dr_plant plant = dr_sim_plant(e->sim);
    uint32_t changed = 0;
    int n = 0, all = 0;
    for (int i = 0; i < DR_N_KNOBS; i++) {
        all += plant.knobs >> i & 1;
        if (!(plant.knobs >> i & 1) || proposal->knob[i] == e->o.knob[i])
            continue;
        changed |= 1u << i;
        n++;
        plant.set(plant.user, i, proposal->knob[i], NULL);
    }
    dr__guard_turned(&e->guard, &e->o, proposal->knob, changed, 0, false);
    e->sim->all.decisions++;
    e->sim->all.changes += n > 0;
    return all ? (double)n / all : 0;
}

void dr_sim_env_reset(dr_sim_env *env, size_t i, uint64_t seed, float *observation)
{
    one *e = &env->at[i];
    dr_sim_reset(e->sim, seed);
    memset(&e->guard, 0, sizeof e->guard);
    memset(&e->memory, 0, sizeof e->memory);
    if (e->state)
        memset(e->state, 0, env->base.def->state_bytes);
    e->quota = 0;
    e->left = env->seconds;
    pass_second(e);
    e->rewarded = e->sim->all.reward;
    e->seconds = e->sim->n_seconds;
    dr__features(&e->o, &e->memory, observation);
}

bool dr_sim_env_step(dr_sim_env *env, size_t i, const int32_t *action, float *observation, double *reward)
{
    one *e = &env->at[i];
    dr__proposal proposal;
    propose(env, e, action, &proposal);
    dr__guard_limit(&e->guard, &e->o, &proposal);
    const double turned = turn_knobs(e, &proposal);
    pass_second(e);
    *reward = reward_of(e, turned);
    dr__features(&e->o, &e->memory, observation);
    e->left -= SNAPSHOTS * DR__SIM_SNAPSHOT_S;
    return e->left < DR__SIM_TICK_S;
}

/* --- opening --- */

void dr_sim_env_defaults(dr_sim_env_options *options)
{
    *options = (dr_sim_env_options){ .size = sizeof *options, .n = 1, .seconds = 120 };
    dr_sim_defaults(&options->of);
}

static dr_status open_one(dr_sim_env *env, const dr_sim_env_options *o, size_t i, dr_error *err)
{
    dr_sim_options of = o->of;
    of.seed += i;
    DR_TRY(dr_sim_open(&of, &env->at[i].sim, err));
    if (!o->base || !*o->base)
        return DR_OK;
    env->at[i].state = dr__alloc_zero(1, DR_MAX(env->base.def->state_bytes, 1));
    return env->at[i].state ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "environments: out of memory");
}

static dr_status open_all(dr_sim_env *env, const dr_sim_env_options *o, dr_error *err)
{
    if (o->base && *o->base)
        DR_TRY(dr__policy_choose(o->base, &env->base, err));
    env->at = dr__alloc_zero(o->n, sizeof *env->at);
    if (!env->at)
        return dr__fail(err, DR_ERR_NOMEM, "environments: no memory for %zu", o->n);
    for (size_t i = 0; i < o->n; i++) {
        env->n = i + 1;
        DR_TRY(open_one(env, o, i, err));
    }
    return DR_OK;
}

dr_status dr_sim_env_open(const dr_sim_env_options *o, dr_sim_env **out, dr_error *err)
{
    *out = NULL;
    if (o->size != sizeof *o)
        return dr__fail(err, DR_ERR_ARG, "dr_sim_env_options.size must be %zu, got %zu: call dr_sim_env_defaults first",
                        sizeof *o, o->size);
    if (o->n < 1 || o->n > 1 << 20)
        return dr__fail(err, DR_ERR_ARG, "environments: n must be 1 to %d, got %zu", 1 << 20, o->n);
    if (!(o->seconds >= 1 && o->seconds <= 1e7))
        return dr__fail(err, DR_ERR_ARG, "environments: seconds must be a number from 1 to 1e7, got %g", o->seconds);
    dr_sim_env *env = dr__alloc_zero(1, sizeof *env);
    if (!env)
        return dr__fail(err, DR_ERR_NOMEM, "environments: out of memory");
    env->seconds = o->seconds;
    const dr_status status = open_all(env, o, err);
    if (status == DR_OK)
        *out = env;
    else
        dr_sim_env_close(&env);
    return status;
}

void dr_sim_env_close(dr_sim_env **env)
{
    if (*env) {
        for (size_t i = 0; i < (*env)->n; i++) {
            dr_sim_close(&(*env)->at[i].sim);
            dr__free((*env)->at[i].state);
        }
        dr__free((*env)->at);
    }
    dr__free(*env);
    *env = NULL;
}

dr_sim *dr_sim_env_sim(dr_sim_env *env, size_t i)
{
    return env->at[i].sim;
}

/* --- tables, for sim_tables.c --- */

const char *dr__sim_action(size_t action, int choice, const char **knob)
{
    *knob = actions[action].name;
    return actions[action].choices[choice];
}
