/* rl_policy.c: one block for parameters and the arrays of one row. */
#include "rl/rl_policy.h"

#include <jansson.h>
#include <string.h>

#include "base/compiler.h"
#include "rl/obs_norm.h"

static void lay_out(void *owner, dr__rl_arena *arena)
{
    dr__rl_policy *p = owner;
    const size_t n_obs = (size_t)p->heads.n_obs;
    p->params = dr__rl_take_floats(arena, p->n_params);
    p->mean = dr__rl_take_floats(arena, n_obs);
    p->scale = dr__rl_take_floats(arena, n_obs);
    p->row = dr__rl_take_floats(arena, n_obs);
    p->present = dr__rl_take(arena, (size_t)p->spec.n_ops, 1);
    dr__rl_tape_lay_out(&p->actor, 1, arena, &p->tape);
}

static dr_status check_shape(const dr__rl_shape *s, dr_error *err)
{
    if (s->n_hidden < 1 || s->n_hidden > DR__RL_LAYERS - 1)
        return dr__fail(err, DR_ERR_ARG, "the number of hidden layers must be between 1 and %d, got %d",
                        DR__RL_LAYERS - 1, s->n_hidden);
    for (int i = 0; i < s->n_hidden; i++)
        if (s->hidden[i] < 1 || s->hidden[i] > DR__RL_HIDDEN)
            return dr__fail(err, DR_ERR_ARG, "hidden layer %d must be 1 to %d wide, got %d", i, DR__RL_HIDDEN,
                            s->hidden[i]);
    if (s->activation != DR__RL_TANH && s->activation != DR__RL_RELU)
        return dr__fail(err, DR_ERR_ARG, "the activation must be 0 (tanh) or 1 (ReLU), got %d", (int)s->activation);
    return DR_OK;
}

dr_status dr__rl_policy_new(const dr__rl_spec *spec, const dr__rl_shape *shape, dr__rl_policy **out, dr_error *err)
{
    *out = NULL;
    DR_TRY(dr__rl_spec_check(spec, err));
    DR_TRY(check_shape(shape, err));
    dr__rl_policy *p = dr__alloc_zero(1, sizeof *p);
    if (!p)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for a policy");
    p->spec = *spec;
    p->shape = *shape;
    dr__rl_heads_of(spec, &p->heads);
    p->actor = dr__rl_actor_shape(spec, shape->hidden, shape->n_hidden, shape->activation);
    if (shape->has_critic)
        p->critic = dr__rl_critic_shape(spec, shape->hidden, shape->n_hidden, shape->activation);
    p->n_params = p->actor.n_params + p->critic.n_params;
    if (!dr__rl_arena_fill(&p->arena, lay_out, p)) {
        const size_t n_params = p->n_params;
        dr__free(p);
        return dr__fail(err, DR_ERR_NOMEM, "no memory for a policy of %zu parameters", n_params);
    }
    for (int i = 0; i < p->heads.n_obs; i++)
        p->scale[i] = 1;
    *out = p;
    return DR_OK;
}

void dr__rl_policy_free(dr__rl_policy **policy)
{
    dr__rl_policy *p = *policy;
    *policy = NULL;
    if (!p)
        return;
    dr__rl_arena_free(&p->arena);
    dr__free(p->facts);
    dr__free(p);
}

void dr__rl_policy_init(dr__rl_policy *p, uint64_t seed)
{
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = seed }, 0);
    dr__rl_net_init(&p->actor, p->params, 0.01, &rng);
    if (p->shape.has_critic)
        dr__rl_net_init(&p->critic, dr__rl_policy_critic(p), 1, &rng);
}

void dr__rl_policy_lean(dr__rl_policy *p, int k, int option, float by)
{
    const dr__rl_net *net = &p->actor;
    const bool is_of_op = k >= p->spec.n_choices;
    const size_t end = net->encoder.n_params + net->trunk.n_params + (is_of_op ? net->op_head.n_params : 0);
    const int out = p->heads.cat[k].out + option;
    if (is_of_op) /* the last numbers of a network are the biases of its outputs */
        p->params[end - (size_t)net->n_op_out + (size_t)((out - net->n_out) % net->n_op_out)] += by;
    else
        p->params[end - (size_t)net->n_out + (size_t)out] += by;
}

dr_status dr__rl_policy_set_facts(dr__rl_policy *p, const char *facts, dr_error *err)
{
    json_t *o = json_loads(facts, 0, NULL);
    const bool is_object = json_is_object(o);
    json_decref(o);
    if (!is_object)
        return dr__fail(err, DR_ERR_ARG, "the facts of a policy must be a JSON object, got '%.40s'", facts);
    char *copy = dr__strdup(facts);
    if (!copy)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for the facts of a policy");
    dr__free(p->facts);
    p->facts = copy;
    return DR_OK;
}

double dr__rl_policy_act(dr__rl_policy *p, const float *obs, const uint8_t *mask, dr_rng *rng, float *action)
{
    double logp;
    dr__rl_normalise(p->mean, p->scale, p->heads.n_obs, obs, p->row);
    dr__rl_present(&p->heads, mask, 1, p->present);
    const float *out = dr__rl_net_forward(&p->actor, p->params, p->row, p->present, 1, &p->tape);
    if (rng) {
        logp = dr__rl_head_draw(&p->heads, out, mask, rng, action);
    } else {
        dr__rl_head_best(&p->heads, out, mask, action);
        logp = dr__rl_head_odds(&p->heads, out, mask, action).logp;
    }
    dr__rl_squash(&p->heads, action, action);
    return logp;
}
