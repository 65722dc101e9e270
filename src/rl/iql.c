/* iql.c: memory for a batch, and the copies that change slowly. */
#include "rl/iql.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "rl/iql_internal.h"
#include "rl/obs_norm.h"

dr__rl_iql_settings dr__rl_iql_defaults(void)
{
    return (dr__rl_iql_settings){ .shape = { .hidden = { 64, 64 }, .n_hidden = 2 },
                                  .batch = 128,
                                  .rate = 1e-3,
                                  .discount = 0.98,
                                  .expectile = 0.7,
                                  .sharpness = 3,
                                  .follow = 0.005 };
}

static dr_status check(const dr__rl_iql_settings *s, dr_error *err)
{
    if (s->batch < 1 || s->batch > 65536)
        return dr__fail(err, DR_ERR_ARG, "batch must be between 1 and 65536, got %d", s->batch);
    const struct {
        const char *name;
        double value, most;
    } reals[] = { { "rate", s->rate, 1 },           { "discount", s->discount, 1 }, { "expectile", s->expectile, 1 },
                  { "sharpness", s->sharpness, 1e6 }, { "follow", s->follow, 1 },     { "pull", s->pull, 1e6 },
                  { "cql_weight", s->cql_weight, 1e6 } };
    for (size_t i = 0; i < DR_COUNT(reals); i++)
        if (!(reals[i].value >= 0 && reals[i].value <= reals[i].most))
            return dr__fail(err, DR_ERR_ARG, "%s must be between 0 and %g, got %g", reals[i].name, reals[i].most,
                            reals[i].value);
    return DR_OK;
}

static void take_adam(dr__rl_arena *arena, size_t n, dr__rl_adam *adam)
{
    adam->n = n;
    adam->first = dr__rl_take_floats(arena, n);
    adam->second = dr__rl_take_floats(arena, n);
}

static void lay_out_q(dr__rl_iql *q, dr__rl_arena *arena, dr__rl_iql_q *one)
{
    one->params = dr__rl_take_floats(arena, q->q.n_params);
    one->slow = dr__rl_take_floats(arena, q->q.n_params);
    one->grads = dr__rl_take_floats(arena, q->q.n_params);
    one->acts = dr__rl_take_floats(arena, dr__rl_mlp_acts(&q->q, q->set.batch));
    one->values = dr__rl_take_floats(arena, (size_t)q->set.batch);
    take_adam(arena, q->q.n_params, &one->adam);
}

static void lay_out(void *owner, dr__rl_arena *arena)
{
    dr__rl_iql *q = owner;
    const dr__rl_policy *p = q->policy;
    const dr__rl_heads *h = &p->heads;
    const size_t n = (size_t)q->set.batch, width = (size_t)q->q.sizes[0];
    const int n_others = q->set.cql_weight > 0 ? q->set.batch * DR__RL_CQL_OTHERS : 0;
    q->rows = dr__rl_take(arena, n, sizeof *q->rows);
    q->obs = dr__rl_take_floats(arena, n * (size_t)h->n_obs);
    q->next_obs = dr__rl_take_floats(arena, n * (size_t)h->n_obs);
    q->actions = dr__rl_take_floats(arena, n * (size_t)h->n_action);
    q->inputs = dr__rl_take_floats(arena, n * width);
    q->others = dr__rl_take_floats(arena, (size_t)n_others * width);
    q->d_others = dr__rl_take_floats(arena, (size_t)n_others);
    q->other_acts = dr__rl_take_floats(arena, dr__rl_mlp_acts(&q->q, n_others));
    q->masks = dr__rl_take(arena, n * (size_t)h->n_mask, 1);
    q->next_masks = dr__rl_take(arena, n * (size_t)h->n_mask, 1);
    q->present = dr__rl_take(arena, n * (size_t)h->n_ops, 1);
    q->next_values = dr__rl_take_floats(arena, n);
    q->targets = dr__rl_take_floats(arena, n);
    q->advantages = dr__rl_take_floats(arena, n);
    q->d_value = dr__rl_take_floats(arena, n);
    q->d_out = dr__rl_take_floats(arena, n * (size_t)h->n_out);
    q->grads = dr__rl_take_floats(arena, p->n_params);
    q->scratch = dr__rl_take_floats(arena, dr__rl_mlp_scratch(&q->q, DR_MAX(q->set.batch, n_others)));
    take_adam(arena, p->n_params, &q->adam);
    dr__rl_tape_lay_out(&p->actor, q->set.batch, arena, &q->actor);
    dr__rl_tape_lay_out(&p->critic, q->set.batch, arena, &q->critic);
    if (q->start)
        dr__rl_tape_lay_out(&q->start->actor, q->set.batch, arena, &q->start_tape);
    for (int k = 0; k < 2; k++)
        lay_out_q(q, arena, &q->qs[k]);
}

/* Means and deviations of the recorded observations. */
static void normalise_by_data(dr__rl_iql *q)
{
    double mean[DR__RL_OBS] = { 0 }, squares[DR__RL_OBS] = { 0 };
    const int n_obs = q->policy->heads.n_obs;
    dr__rl_moments moments = { .n = n_obs, .mean = mean, .squares = squares };
    for (int i = 0; i < q->data.n; i++)
        dr__rl_moments_add(&moments, q->data.obs + (size_t)i * (size_t)n_obs);
    dr__rl_moments_scale(&moments, q->policy->mean, q->policy->scale);
}

static void copy_policy(dr__rl_policy *to, const dr__rl_policy *from)
{
    const size_t n_obs = (size_t)from->heads.n_obs * sizeof(float);
    memcpy(to->params, from->params, DR_MIN(from->n_params, to->n_params) * sizeof(float));
    memcpy(to->mean, from->mean, n_obs);
    memcpy(to->scale, from->scale, n_obs);
}

static dr_status make_policies(dr__rl_iql *q, const dr__rl_spec *spec, const dr__rl_policy *start, dr_error *err)
{
    dr__rl_shape shape = start ? start->shape : q->set.shape;
    shape.has_critic = true;
    if (start)
        DR_TRY(dr__rl_spec_same(&start->spec, spec, "the policy to start from", err));
    DR_TRY(dr__rl_policy_new(spec, &shape, &q->policy, err));
    dr__rl_policy_init(q->policy, q->set.seed);
    if (!start)
        return DR_OK;
    shape.has_critic = false;
    DR_TRY(dr__rl_policy_new(spec, &shape, &q->start, err));
    copy_policy(q->policy, start);
    copy_policy(q->start, start);
    return DR_OK;
}

static dr_status make(dr__rl_iql *q, const dr__rl_spec *spec, const dr__rl_policy *start, dr_error *err)
{
    DR_TRY(make_policies(q, spec, start, err));
    DR_TRY(dr__rl_data_check(&q->data, &q->policy->heads, err));
    const dr__rl_shape *shape = &q->policy->shape;
    q->q = dr__rl_q_shape(&q->policy->heads, shape->hidden, shape->n_hidden, shape->activation);
    if (!dr__rl_arena_fill(&q->arena, lay_out, q))
        return dr__fail(err, DR_ERR_NOMEM, "no memory for batches of %d", q->set.batch);
    q->rng = dr__rng_open(&(dr__rng_name){ .seed = q->set.seed }, 5);
    for (int k = 0; k < 2; k++) {
        dr__rl_mlp_init(&q->q, q->qs[k].params, sqrt(2), 1, &q->rng);
        memcpy(q->qs[k].slow, q->qs[k].params, q->q.n_params * sizeof(float));
    }
    if (!start && q->set.normalise)
        normalise_by_data(q);
    return DR_OK;
}

dr_status dr__rl_iql_new(const dr__rl_spec *spec, const dr__rl_data *data, const dr__rl_iql_settings *settings,
                         const dr__rl_policy *start, dr__rl_iql **out, dr_error *err)
{
    *out = NULL;
    DR_TRY(check(settings, err));
    dr__rl_iql *q = dr__alloc_zero(1, sizeof *q);
    if (!q)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for training");
    q->set = *settings;
    q->data = *data;
    const dr_status status = make(q, spec, start, err);
    if (status != DR_OK)
        dr__rl_iql_free(&q);
    *out = q;
    return status;
}

void dr__rl_iql_free(dr__rl_iql **at)
{
    dr__rl_iql *q = *at;
    *at = NULL;
    if (!q)
        return;
    dr__rl_arena_free(&q->arena);
    dr__rl_policy_free(&q->policy);
    dr__rl_policy_free(&q->start);
    dr__free(q);
}

dr__rl_policy *dr__rl_iql_policy(dr__rl_iql *q)
{
    return q->policy;
}

void dr__rl_iql_run(dr__rl_iql *q, int n, dr__rl_iql_progress *out)
{
    *out = (dr__rl_iql_progress){ 0 };
    for (int i = 0; i < n; i++)
        dr__rl_iql_update(q, out);
    out->updates = q->updates;
    out->value_loss /= DR_MAX(n, 1);
    out->q_loss /= DR_MAX(n, 1);
    out->policy_loss /= DR_MAX(n, 1);
    out->pulled /= DR_MAX(n, 1);
}
