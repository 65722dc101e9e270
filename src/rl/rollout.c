/* rollout.c: chunks of environments, each of which goes through all steps on its own. */
#include "rl/rollout.h"

#include <string.h>

#include "base/compiler.h"
#include "base/permute.h"

struct dr__rl_lane {
    void *env;
    dr_rng rng;     /* of its actions */
    float *now;     /* the observation as it came, and the mask with it */
    uint8_t *mask;
    uint32_t episode, step;
    double gained;  /* in this episode */
};

struct dr__rl_chunk {
    dr__rl_tape actor, critic, critic_row;
    dr__rl_moments moments;
    float *row, *action; /* of one environment */
    uint8_t *present;
    double episodes, return_sum, length_sum;
};

static int n_chunks(const dr__rl_rollout *r)
{
    return (r->set.n_envs + DR__RL_CHUNK - 1) / DR__RL_CHUNK;
}

static void take_moments(dr__rl_arena *arena, dr__rl_moments *m, int n)
{
    m->n = n;
    m->mean = dr__rl_take(arena, (size_t)n, sizeof(double));
    m->squares = dr__rl_take(arena, (size_t)n, sizeof(double));
}

static void lay_out_chunk(const dr__rl_policy *p, dr__rl_arena *arena, dr__rl_chunk *c)
{
    dr__rl_tape_lay_out(&p->actor, DR__RL_CHUNK, arena, &c->actor);
    dr__rl_tape_lay_out(&p->critic, DR__RL_CHUNK, arena, &c->critic);
    dr__rl_tape_lay_out(&p->critic, 1, arena, &c->critic_row);
    take_moments(arena, &c->moments, p->heads.n_obs);
    c->row = dr__rl_take_floats(arena, (size_t)p->heads.n_obs);
    c->action = dr__rl_take_floats(arena, (size_t)p->heads.n_action);
    c->present = dr__rl_take(arena, (size_t)p->heads.n_ops * DR__RL_CHUNK, 1);
}

static void lay_out(void *owner, dr__rl_arena *arena)
{
    dr__rl_rollout *r = owner;
    const dr__rl_heads *h = &r->policy->heads;
    const size_t rows = (size_t)r->set.n_steps * (size_t)r->set.n_envs;
    r->obs = dr__rl_take_floats(arena, rows * (size_t)h->n_obs);
    r->actions = dr__rl_take_floats(arena, rows * (size_t)h->n_action);
    r->masks = dr__rl_take(arena, rows * (size_t)h->n_mask, 1);
    r->logps = dr__rl_take_floats(arena, rows);
    r->values = dr__rl_take_floats(arena, rows);
    r->next_values = dr__rl_take_floats(arena, rows);
    r->rewards = dr__rl_take_floats(arena, rows);
    r->ended = dr__rl_take(arena, rows, 1);
    r->places = dr__rl_take(arena, rows, sizeof *r->places);
    take_moments(arena, &r->moments, h->n_obs);
    r->lanes = dr__rl_take(arena, (size_t)r->set.n_envs, sizeof *r->lanes);
    r->chunks = dr__rl_take(arena, (size_t)n_chunks(r), sizeof *r->chunks);
    dr__rl_lane lane;
    dr__rl_chunk chunk;
    for (int e = 0; e < r->set.n_envs; e++) {
        dr__rl_lane *l = arena->block ? &r->lanes[e] : &lane;
        l->now = dr__rl_take_floats(arena, (size_t)h->n_obs);
        l->mask = dr__rl_take(arena, (size_t)h->n_mask, 1);
    }
    for (int k = 0; k < n_chunks(r); k++)
        lay_out_chunk(r->policy, arena, arena->block ? &r->chunks[k] : &chunk);
}

static void begin_episode(dr__rl_rollout *r, int e)
{
    dr__rl_lane *l = &r->lanes[e];
    const uint64_t seed = dr__permute_key(r->set.seed, (uint64_t)(e / r->set.trace_group), l->episode);
    memset(l->mask, 1, (size_t)r->policy->heads.n_mask);
    l->step = 0;
    l->gained = 0;
    r->set.def->reset(l->env, seed, l->now, l->mask);
}

dr_status dr__rl_rollout_open(dr__rl_rollout *r, const dr__rl_rollout_settings *settings, const dr__rl_policy *policy,
                              dr_error *err)
{
    *r = (dr__rl_rollout){ .set = *settings, .policy = policy };
    if (!dr__rl_arena_fill(&r->arena, lay_out, r))
        return dr__fail(err, DR_ERR_NOMEM, "no memory for %d steps of %d environments", settings->n_steps,
                        settings->n_envs);
    for (int e = 0; e < settings->n_envs; e++) {
        const dr_status status = settings->def->open(settings->arg, &r->lanes[e].env, err);
        if (status != DR_OK) {
            dr__rl_rollout_close(r);
            return status;
        }
        r->lanes[e].rng = dr__rng_open(&(dr__rng_name){ .seed = settings->seed, .sample = (uint64_t)e }, 1);
        begin_episode(r, e);
    }
    return DR_OK;
}

void dr__rl_rollout_close(dr__rl_rollout *r)
{
    for (int e = 0; r->arena.block && e < r->set.n_envs; e++)
        if (r->lanes[e].env)
            r->set.def->close(r->lanes[e].env);
    dr__rl_arena_free(&r->arena);
}

/* The critic's value of what an environment shows now. */
static float value_now(const dr__rl_rollout *r, dr__rl_chunk *c, const dr__rl_lane *l)
{
    const dr__rl_policy *p = r->policy;
    dr__rl_normalise(p->mean, p->scale, p->heads.n_obs, l->now, c->row);
    dr__rl_present(&p->heads, l->mask, 1, c->present);
    return dr__rl_net_forward(&p->critic, dr__rl_policy_critic(p), c->row, c->present, 1, &c->critic_row)[0];
}

/* One environment takes the action of row i. */
static void step_lane(dr__rl_rollout *r, dr__rl_chunk *c, int e, size_t i)
{
    dr__rl_lane *l = &r->lanes[e];
    const dr__rl_heads *h = &r->policy->heads;
    dr__rl_outcome outcome = { 0 };
    dr__rl_squash(h, r->actions + i * (size_t)h->n_action, c->action);
    r->set.def->step(l->env, c->action, l->now, l->mask, &outcome);
    r->rewards[i] = outcome.reward;
    r->ended[i] = outcome.terminated || outcome.truncated;
    r->places[i] = (uint64_t)l->episode << 32 | l->step++;
    l->gained += outcome.reward;
    if (!r->ended[i])
        return;
    r->next_values[i] = outcome.terminated ? 0 : value_now(r, c, l);
    c->episodes += 1;
    c->return_sum += l->gained;
    c->length_sum += l->step;
    l->episode++;
    begin_episode(r, e);
}

/* Sees, decides and acts in the environments first to end - 1. */
static void step_chunk(dr__rl_rollout *r, dr__rl_chunk *c, int t, int first, int end)
{
    const dr__rl_policy *p = r->policy;
    const dr__rl_heads *h = &p->heads;
    const size_t at = (size_t)t * (size_t)r->set.n_envs, row = at + (size_t)first;
    for (int e = first; e < end; e++) {
        dr__rl_moments_add(&c->moments, r->lanes[e].now);
        dr__rl_normalise(p->mean, p->scale, h->n_obs, r->lanes[e].now, r->obs + (at + (size_t)e) * (size_t)h->n_obs);
        memcpy(r->masks + (at + (size_t)e) * (size_t)h->n_mask, r->lanes[e].mask, (size_t)h->n_mask);
    }
    const float *obs = r->obs + row * (size_t)h->n_obs;
    dr__rl_present(h, r->masks + row * (size_t)h->n_mask, end - first, c->present);
    const float *out = dr__rl_net_forward(&p->actor, p->params, obs, c->present, end - first, &c->actor);
    const float *value = dr__rl_net_forward(&p->critic, dr__rl_policy_critic(p), obs, c->present, end - first, &c->critic);
    for (int e = first; e < end; e++) {
        const size_t i = at + (size_t)e;
        r->values[i] = value[e - first];
        r->logps[i] =
            (float)dr__rl_head_draw(h, out + (size_t)(e - first) * (size_t)h->n_out,
                                    r->masks + i * (size_t)h->n_mask, &r->lanes[e].rng, r->actions + i * (size_t)h->n_action);
        step_lane(r, c, e, i);
    }
}

static void run_chunk(void *owner, int part)
{
    dr__rl_rollout *r = owner;
    dr__rl_chunk *c = &r->chunks[part];
    const int first = part * DR__RL_CHUNK, end = DR_MIN(first + DR__RL_CHUNK, r->set.n_envs);
    const size_t n = (size_t)r->set.n_envs;
    c->episodes = c->return_sum = c->length_sum = 0;
    for (int t = 0; t < r->set.n_steps; t++)
        step_chunk(r, c, t, first, end);
    for (int e = first; e < end; e++) {
        float later = value_now(r, c, &r->lanes[e]);
        for (int t = r->set.n_steps - 1; t >= 0; t--) {
            const size_t i = (size_t)t * n + (size_t)e;
            if (!r->ended[i])
                r->next_values[i] = later;
            later = r->values[i];
        }
    }
}

void dr__rl_rollout_run(dr__rl_rollout *r, dr__rl_team *team)
{
    dr__rl_team_run(team, run_chunk, r, n_chunks(r));
    r->episodes = r->return_sum = r->length_sum = 0;
    for (int k = 0; k < n_chunks(r); k++) {
        r->episodes += r->chunks[k].episodes;
        r->return_sum += r->chunks[k].return_sum;
        r->length_sum += r->chunks[k].length_sum;
        dr__rl_moments_merge(&r->moments, &r->chunks[k].moments);
    }
}

static double play(const dr__rl_env_def *def, void *env, dr__rl_policy *policy, uint64_t seed, bool draw)
{
    float obs[DR__RL_OBS], action[DR__RL_ACTION];
    uint8_t mask[DR__RL_MASK];
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = seed }, 2);
    dr__rl_outcome outcome = { 0 };
    double gained = 0;
    memset(mask, 1, sizeof mask);
    def->reset(env, seed, obs, mask);
    while (!outcome.terminated && !outcome.truncated) {
        dr__rl_policy_act(policy, obs, mask, draw ? &rng : NULL, action);
        outcome = (dr__rl_outcome){ 0 };
        def->step(env, action, obs, mask, &outcome);
        gained += outcome.reward;
    }
    return gained;
}

dr_status dr__rl_evaluate(const dr__rl_env_def *def, const void *arg, dr__rl_policy *policy, int n, uint64_t seed,
                          bool draw, double *returns, double *mean, dr_error *err)
{
    void *env;
    double sum = 0;
    DR_TRY(def->open(arg, &env, err));
    for (int i = 0; i < n; i++) {
        const double gained = play(def, env, policy, seed + (uint64_t)i, draw);
        sum += gained;
        if (returns)
            returns[i] = gained;
    }
    def->close(env);
    *mean = n ? sum / n : 0;
    return DR_OK;
}
