/* ppo.c: rollout, advantages, update, and what changes over the steps. */
#include "rl/ppo.h"

#include <string.h>

#include "base/compiler.h"
#include "rl/gae.h"
#include "rl/ppo_internal.h"

dr__rl_ppo_settings dr__rl_ppo_defaults(void)
{
    return (dr__rl_ppo_settings){ .shape = { .hidden = { 64, 64 }, .n_hidden = 2, .has_critic = true },
                                  .total_steps = 1000000,
                                  .threads = 1,
                                  .n_envs = 8,
                                  .n_steps = 256,
                                  .trace_group = 1,
                                  .epochs = 4,
                                  .minibatches = 4,
                                  .parts = 4,
                                  .discount = 0.98,
                                  .lambda = 0.95,
                                  .rate = 3e-4,
                                  .clip = 0.2,
                                  .clip_end = 0.2,
                                  .entropy = 0.01,
                                  .entropy_end = 0.001,
                                  .value_weight = 0.5,
                                  .max_norm = 0.5,
                                  .max_kl = 0.02 };
}

static dr_status check_int(const char *name, int value, int least, int most, dr_error *err)
{
    if (value < least || value > most)
        return dr__fail(err, DR_ERR_ARG, "%s must be between %d and %d, got %d", name, least, most, value);
    return DR_OK;
}

static dr_status check_real(const char *name, double value, double least, double most, dr_error *err)
{
    if (!(value >= least && value <= most))
        return dr__fail(err, DR_ERR_ARG, "%s must be between %g and %g, got %g", name, least, most, value);
    return DR_OK;
}

static dr_status check(const dr__rl_ppo_settings *s, dr_error *err)
{
    DR_TRY(check_int("threads", s->threads, 1, 256, err));
    DR_TRY(check_int("n_envs", s->n_envs, 1, 4096, err));
    DR_TRY(check_int("n_steps", s->n_steps, 1, 65536, err));
    DR_TRY(check_int("trace_group", s->trace_group, 1, s->n_envs, err));
    DR_TRY(check_int("epochs", s->epochs, 1, 1000, err));
    DR_TRY(check_int("minibatches", s->minibatches, 1, s->n_envs * s->n_steps, err));
    DR_TRY(check_int("parts", s->parts, 1, DR__RL_PARTS, err));
    DR_TRY(check_real("discount", s->discount, 0, 1, err));
    DR_TRY(check_real("lambda", s->lambda, 0, 1, err));
    DR_TRY(check_real("rate", s->rate, 0, 1, err));
    DR_TRY(check_real("rate_end", s->rate_end, 0, 1, err));
    DR_TRY(check_real("clip", s->clip, 0, 1, err));
    DR_TRY(check_real("clip_end", s->clip_end, 0, 1, err));
    DR_TRY(check_real("entropy", s->entropy, 0, 10, err));
    DR_TRY(check_real("entropy_end", s->entropy_end, 0, 10, err));
    DR_TRY(check_real("value_weight", s->value_weight, 0, 100, err));
    DR_TRY(check_real("value_clip", s->value_clip, 0, 1e9, err));
    DR_TRY(check_real("max_norm", s->max_norm, 0, 1e9, err));
    return check_real("max_kl", s->max_kl, 0, 1e9, err);
}

static void lay_out_part(const dr__rl_ppo *ppo, dr__rl_arena *arena, dr__rl_ppo_part *part)
{
    const dr__rl_policy *p = ppo->policy;
    const size_t n = (size_t)ppo->part_rows;
    dr__rl_tape_lay_out(&p->actor, ppo->part_rows, arena, &part->actor);
    dr__rl_tape_lay_out(&p->critic, ppo->part_rows, arena, &part->critic);
    part->obs = dr__rl_take_floats(arena, n * (size_t)p->heads.n_obs);
    part->d_out = dr__rl_take_floats(arena, n * (size_t)p->heads.n_out);
    part->d_value = dr__rl_take_floats(arena, n);
    part->grads = dr__rl_take_floats(arena, p->n_params);
    part->masks = dr__rl_take(arena, n * (size_t)p->heads.n_mask, 1);
    part->present = dr__rl_take(arena, n * (size_t)p->heads.n_ops, 1);
}

static void lay_out(void *owner, dr__rl_arena *arena)
{
    dr__rl_ppo *ppo = owner;
    const size_t rows = (size_t)ppo->n_rows;
    ppo->adam.n = ppo->policy->n_params;
    ppo->adam.first = dr__rl_take_floats(arena, ppo->adam.n);
    ppo->adam.second = dr__rl_take_floats(arena, ppo->adam.n);
    ppo->advantages = dr__rl_take_floats(arena, rows);
    ppo->returns = dr__rl_take_floats(arena, rows);
    ppo->scaled = dr__rl_take_floats(arena, (size_t)ppo->minibatch);
    ppo->room = dr__rl_take_floats(arena, (size_t)ppo->set.n_envs);
    ppo->order = dr__rl_take(arena, rows, sizeof *ppo->order);
    for (int i = 0; i < ppo->set.parts; i++)
        lay_out_part(ppo, arena, &ppo->parts[i]);
}

/* A new policy, or a copy of `start` with a critic. */
static dr_status make_policy(dr__rl_ppo *ppo, const dr__rl_spec *spec, const dr__rl_policy *start, dr_error *err)
{
    dr__rl_shape shape = start ? start->shape : ppo->set.shape;
    shape.has_critic = true;
    if (start)
        DR_TRY(dr__rl_spec_same(&start->spec, spec, "the policy to start from", err));
    DR_TRY(dr__rl_policy_new(spec, &shape, &ppo->policy, err));
    dr__rl_policy_init(ppo->policy, ppo->set.seed);
    if (start) {
        const size_t n_obs = (size_t)start->heads.n_obs * sizeof(float);
        memcpy(ppo->policy->params, start->params, start->n_params * sizeof(float));
        memcpy(ppo->policy->mean, start->mean, n_obs);
        memcpy(ppo->policy->scale, start->scale, n_obs);
    }
    return DR_OK;
}

static dr_status make(dr__rl_ppo *ppo, const dr__rl_env_def *def, const void *arg, const dr__rl_policy *start,
                      dr_error *err)
{
    const dr__rl_ppo_settings *s = &ppo->set;
    const dr__rl_rollout_settings roll = { .def = def,
                                           .arg = arg,
                                           .n_steps = s->n_steps,
                                           .n_envs = s->n_envs,
                                           .trace_group = s->trace_group,
                                           .seed = s->seed };
    DR_TRY(make_policy(ppo, def->spec, start, err));
    ppo->n_rows = s->n_envs * s->n_steps;
    ppo->minibatch = (ppo->n_rows + s->minibatches - 1) / s->minibatches;
    ppo->part_rows = (ppo->minibatch + s->parts - 1) / s->parts;
    ppo->rng = dr__rng_open(&(dr__rng_name){ .seed = s->seed }, 3);
    if (!dr__rl_arena_fill(&ppo->arena, lay_out, ppo))
        return dr__fail(err, DR_ERR_NOMEM, "no memory for training %zu parameters", ppo->policy->n_params);
    for (int i = 0; i < ppo->n_rows; i++)
        ppo->order[i] = (uint32_t)i;
    DR_TRY(dr__rl_team_new(s->threads, &ppo->team, err));
    return dr__rl_rollout_open(&ppo->rollout, &roll, ppo->policy, err);
}

dr_status dr__rl_ppo_new(const dr__rl_env_def *def, const void *arg, const dr__rl_ppo_settings *settings,
                         const dr__rl_policy *start, dr__rl_ppo **out, dr_error *err)
{
    *out = NULL;
    DR_TRY(check(settings, err));
    dr__rl_ppo *ppo = dr__alloc_zero(1, sizeof *ppo);
    if (!ppo)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for training");
    ppo->set = *settings;
    const dr_status status = make(ppo, def, arg, start, err);
    if (status != DR_OK)
        dr__rl_ppo_free(&ppo);
    *out = ppo;
    return status;
}

void dr__rl_ppo_free(dr__rl_ppo **at)
{
    dr__rl_ppo *ppo = *at;
    *at = NULL;
    if (!ppo)
        return;
    dr__rl_rollout_close(&ppo->rollout);
    dr__rl_team_free(&ppo->team);
    dr__rl_arena_free(&ppo->arena);
    dr__rl_policy_free(&ppo->policy);
    dr__free(ppo);
}

dr__rl_policy *dr__rl_ppo_policy(dr__rl_ppo *ppo)
{
    return ppo->policy;
}

static double explained_variance(const dr__rl_ppo *ppo)
{
    double mean = 0, error_mean = 0, all = 0, errors = 0;
    for (int i = 0; i < ppo->n_rows; i++) {
        mean += ppo->returns[i] / ppo->n_rows;
        error_mean += ((double)ppo->returns[i] - ppo->rollout.values[i]) / ppo->n_rows;
    }
    for (int i = 0; i < ppo->n_rows; i++) {
        const double error = (double)ppo->returns[i] - ppo->rollout.values[i] - error_mean;
        all += (ppo->returns[i] - mean) * (ppo->returns[i] - mean);
        errors += error * error;
    }
    return all > 0 ? 1 - errors / all : 0;
}

static void find_advantages(dr__rl_ppo *ppo)
{
    const dr__rl_rollout *r = &ppo->rollout;
    const dr__rl_gae_steps steps = { .n_steps = ppo->set.n_steps,
                                     .n_envs = ppo->set.n_envs,
                                     .rewards = r->rewards,
                                     .values = r->values,
                                     .next_values = r->next_values,
                                     .ended = r->ended };
    dr__rl_gae(&steps, ppo->set.discount, ppo->set.lambda, ppo->advantages, ppo->returns);
    if (ppo->set.trace_group > 1)
        dr__rl_peer_baseline(ppo->set.n_steps, ppo->set.n_envs, ppo->set.trace_group, r->places, ppo->advantages,
                             ppo->room);
}

bool dr__rl_ppo_iterate(dr__rl_ppo *ppo, dr__rl_ppo_progress *out)
{
    const dr__rl_ppo_settings *s = &ppo->set;
    const dr__rl_rollout *r = &ppo->rollout;
    *out = (dr__rl_ppo_progress){ .steps = ppo->steps };
    if (ppo->steps >= s->total_steps)
        return false;
    const double past = (double)ppo->steps / (double)s->total_steps;
    ppo->clip = s->clip + past * (s->clip_end - s->clip);
    ppo->entropy = s->entropy + past * (s->entropy_end - s->entropy);
    dr__rl_rollout_run(&ppo->rollout, ppo->team);
    find_advantages(ppo);
    dr__rl_ppo_update(ppo, s->rate + past * (s->rate_end - s->rate), out);
    if (s->normalise)
        dr__rl_moments_scale(&r->moments, ppo->policy->mean, ppo->policy->scale);
    ppo->steps += (uint64_t)ppo->n_rows;
    out->steps = ppo->steps;
    out->episodes = (int)r->episodes;
    out->mean_return = r->episodes > 0 ? r->return_sum / r->episodes : 0;
    out->mean_length = r->episodes > 0 ? r->length_sum / r->episodes : 0;
    out->explained = explained_variance(ppo);
    return true;
}
