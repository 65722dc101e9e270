/* sac.c: one environment, what happened in it, and an update a step. */
#include "rl/sac.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/permute.h"
#include "rl/rl_arena.h"
#include "rl/sac_internal.h"

dr__rl_sac_settings dr__rl_sac_defaults(void)
{
    return (dr__rl_sac_settings){ .shape = { .hidden = { 64, 64 }, .n_hidden = 2, .activation = DR__RL_RELU },
                                  .capacity = 100000,
                                  .warm_up = 500,
                                  .batch = 128,
                                  .rate = 1e-3,
                                  .discount = 0.98,
                                  .follow = 0.005,
                                  .entropy = -1 };
}

static dr_status check(const dr__rl_sac_settings *s, const dr__rl_spec *spec, dr_error *err)
{
    if (spec->n_choices || spec->n_ops || !spec->n_continuous)
        return dr__fail(err, DR_ERR_ARG, "soft actor-critic needs actions that are all continuous, '%s' has choices",
                        spec->name);
    if (s->capacity < 1 || s->batch < 1 || s->warm_up < 1)
        return dr__fail(err, DR_ERR_ARG, "capacity, batch and warm_up must be at least 1, got %d, %d and %d",
                        s->capacity, s->batch, s->warm_up);
    if (!(s->rate >= 0 && s->rate <= 1 && s->discount >= 0 && s->discount <= 1 && s->follow >= 0 && s->follow <= 1))
        return dr__fail(err, DR_ERR_ARG, "rate, discount and follow must be between 0 and 1, got %g, %g and %g",
                        s->rate, s->discount, s->follow);
    if (!isfinite(s->entropy))
        return dr__fail(err, DR_ERR_ARG, "entropy must be finite, got %g", s->entropy);
    return DR_OK;
}

static void take_adam(dr__rl_arena *arena, size_t n, dr__rl_adam *adam)
{
    adam->n = n;
    adam->first = dr__rl_take_floats(arena, n);
    adam->second = dr__rl_take_floats(arena, n);
}

static void lay_out(void *owner, dr__rl_arena *arena)
{
    dr__rl_sac *s = owner;
    const dr__rl_heads *h = &s->policy->heads;
    const size_t kept = (size_t)s->set.capacity, n = (size_t)s->set.batch, width = (size_t)s->q.sizes[0];
    const size_t n_obs = (size_t)h->n_obs, n_action = (size_t)h->n_action;
    s->obs = dr__rl_take_floats(arena, kept * n_obs);
    s->next_obs = dr__rl_take_floats(arena, kept * n_obs);
    s->actions = dr__rl_take_floats(arena, kept * n_action);
    s->rewards = dr__rl_take_floats(arena, kept);
    s->terminated = dr__rl_take(arena, kept, 1);
    s->rows = dr__rl_take(arena, n, sizeof *s->rows);
    s->batch_obs = dr__rl_take_floats(arena, n * n_obs);
    s->inputs = dr__rl_take_floats(arena, n * width);
    s->d_inputs = dr__rl_take_floats(arena, 2 * n * width); /* of one critic, and of both */
    s->targets = dr__rl_take_floats(arena, n);
    s->d_value = dr__rl_take_floats(arena, n);
    s->action = dr__rl_take_floats(arena, n * n_action);
    s->noise = dr__rl_take_floats(arena, n * n_action);
    s->logps = dr__rl_take_floats(arena, n);
    s->d_out = dr__rl_take_floats(arena, n * (size_t)h->n_out);
    s->scratch = dr__rl_take_floats(arena, dr__rl_mlp_scratch(&s->q, s->set.batch));
    s->actor_grads = dr__rl_take_floats(arena, s->policy->actor.n_params);
    take_adam(arena, s->policy->actor.n_params, &s->actor_adam);
    dr__rl_tape_lay_out(&s->policy->actor, s->set.batch, arena, &s->tape);
    for (int k = 0; k < 2; k++) {
        dr__rl_sac_critic *c = &s->critics[k];
        s->values[k] = dr__rl_take_floats(arena, n);
        c->params = dr__rl_take_floats(arena, s->q.n_params);
        c->slow = dr__rl_take_floats(arena, s->q.n_params);
        c->grads = dr__rl_take_floats(arena, s->q.n_params);
        c->acts = dr__rl_take_floats(arena, dr__rl_mlp_acts(&s->q, s->set.batch));
        take_adam(arena, s->q.n_params, &c->adam);
    }
}

static void begin_episode(dr__rl_sac *s)
{
    uint8_t none;
    s->gained = 0;
    s->def->reset(s->env, dr__permute_key(s->set.seed, 0, s->episode++), s->now, &none);
}

static dr_status make(dr__rl_sac *s, const void *arg, dr_error *err)
{
    dr__rl_shape shape = s->set.shape;
    shape.has_critic = false;
    DR_TRY(dr__rl_policy_new(s->def->spec, &shape, &s->policy, err));
    dr__rl_policy_init(s->policy, s->set.seed);
    s->q = dr__rl_q_shape(&s->policy->heads, shape.hidden, shape.n_hidden, shape.activation);
    if (!dr__rl_arena_fill(&s->arena, lay_out, s))
        return dr__fail(err, DR_ERR_NOMEM, "no memory for %d steps", s->set.capacity);
    s->rng = dr__rng_open(&(dr__rng_name){ .seed = s->set.seed }, 4);
    s->weight_adam = (dr__rl_adam){ .n = 1, .first = &s->weight_moments[0], .second = &s->weight_moments[1] };
    s->log_weight = -1;
    for (int k = 0; k < 2; k++) {
        dr__rl_mlp_init(&s->q, s->critics[k].params, sqrt(2), 1, &s->rng);
        memcpy(s->critics[k].slow, s->critics[k].params, s->q.n_params * sizeof(float));
    }
    DR_TRY(s->def->open(arg, &s->env, err));
    begin_episode(s);
    return DR_OK;
}

dr_status dr__rl_sac_new(const dr__rl_env_def *def, const void *arg, const dr__rl_sac_settings *settings,
                         dr__rl_sac **out, dr_error *err)
{
    *out = NULL;
    DR_TRY(check(settings, def->spec, err));
    dr__rl_sac *s = dr__alloc_zero(1, sizeof *s);
    if (!s)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for training");
    s->set = *settings;
    s->def = def;
    const dr_status status = make(s, arg, err);
    if (status != DR_OK)
        dr__rl_sac_free(&s);
    *out = s;
    return status;
}

void dr__rl_sac_free(dr__rl_sac **at)
{
    dr__rl_sac *s = *at;
    *at = NULL;
    if (!s)
        return;
    if (s->env)
        s->def->close(s->env);
    dr__rl_arena_free(&s->arena);
    dr__rl_policy_free(&s->policy);
    dr__free(s);
}

dr__rl_policy *dr__rl_sac_policy(dr__rl_sac *s)
{
    return s->policy;
}

/* Acts, and remembers what came of it. */
static void act(dr__rl_sac *s, dr__rl_sac_progress *out)
{
    const dr__rl_heads *h = &s->policy->heads;
    const size_t n_obs = (size_t)h->n_obs, i = (size_t)s->next;
    float *action = s->actions + i * (size_t)h->n_action;
    uint8_t none;
    dr__rl_outcome outcome = { 0 };
    memcpy(s->obs + i * n_obs, s->now, n_obs * sizeof(float));
    if (s->steps < (uint64_t)s->set.warm_up)
        for (int k = 0; k < h->n_action; k++)
            action[k] = (float)dr__rng_uniform(&s->rng, -1, 1);
    else
        dr__rl_policy_act(s->policy, s->now, NULL, &s->rng, action);
    s->def->step(s->env, action, s->now, &none, &outcome);
    memcpy(s->next_obs + i * n_obs, s->now, n_obs * sizeof(float));
    s->rewards[i] = outcome.reward;
    s->terminated[i] = outcome.terminated;
    s->gained += outcome.reward;
    s->next = (s->next + 1) % s->set.capacity;
    s->n = DR_MIN(s->n + 1, s->set.capacity);
    s->steps++;
    if (!outcome.terminated && !outcome.truncated)
        return;
    out->episodes++;
    out->mean_return += s->gained;
    begin_episode(s);
}

void dr__rl_sac_run(dr__rl_sac *s, int n, dr__rl_sac_progress *out)
{
    int updates = 0;
    *out = (dr__rl_sac_progress){ 0 };
    for (int i = 0; i < n; i++) {
        act(s, out);
        if (s->steps < (uint64_t)s->set.warm_up)
            continue;
        dr__rl_sac_update(s, out);
        updates++;
    }
    out->steps = s->steps;
    out->mean_return /= DR_MAX(out->episodes, 1);
    out->q_loss /= DR_MAX(updates, 1);
}
