/* iql_update.c: values of states by expectiles, values of actions by the states that follow, and the policy by both. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/fmath.h"
#include "rl/iql_internal.h"
#include "rl/obs_norm.h"

static void gather(dr__rl_iql *q)
{
    const dr__rl_policy *p = q->policy;
    const dr__rl_heads *h = &p->heads;
    const size_t n_obs = (size_t)h->n_obs, n_mask = (size_t)h->n_mask, n_action = (size_t)h->n_action;
    for (size_t r = 0; r < (size_t)q->set.batch; r++) {
        const size_t i = q->rows[r] = (uint32_t)dr__rng_below(&q->rng, (uint64_t)q->data.n);
        dr__rl_normalise(p->mean, p->scale, h->n_obs, q->data.obs + i * n_obs, q->obs + r * n_obs);
        dr__rl_normalise(p->mean, p->scale, h->n_obs, q->data.next_obs + i * n_obs, q->next_obs + r * n_obs);
        if (n_mask) {
            memcpy(q->masks + r * n_mask, q->data.masks + i * n_mask, n_mask);
            memcpy(q->next_masks + r * n_mask, q->data.next_masks + i * n_mask, n_mask);
        }
        memcpy(q->actions + r * n_action, q->data.actions + i * n_action, n_action * sizeof(float));
        dr__rl_q_input(h, q->obs + r * n_obs, q->masks + r * n_mask, q->actions + r * n_action,
                       q->inputs + r * (size_t)q->q.sizes[0]);
    }
}

static const float *state_values(dr__rl_iql *q, const float *obs, const uint8_t *masks)
{
    const dr__rl_policy *p = q->policy;
    dr__rl_present(&p->heads, masks, q->set.batch, q->present);
    return dr__rl_net_forward(&p->critic, dr__rl_policy_critic(p), obs, q->present, q->set.batch, &q->critic);
}

/* The value of a state moves to the expectile of the values of recorded actions; advantages are their differences. */
static void update_values(dr__rl_iql *q, dr__rl_iql_progress *out)
{
    const int n = q->set.batch;
    dr__rl_policy *p = q->policy;
    for (int k = 0; k < 2; k++)
        memcpy(q->qs[k].values, dr__rl_mlp_forward(&q->q, q->qs[k].slow, q->inputs, n, q->qs[k].acts),
               (size_t)n * sizeof(float));
    const float *values = state_values(q, q->obs, q->masks);
    for (int r = 0; r < n; r++) {
        const float apart = DR_MIN(q->qs[0].values[r], q->qs[1].values[r]) - values[r];
        const double weight = apart > 0 ? q->set.expectile : 1 - q->set.expectile;
        q->advantages[r] = apart;
        q->d_value[r] = (float)(-2 * weight * apart / n);
        out->value_loss += weight * apart * apart / n;
    }
    dr__rl_net_backward(&p->critic, dr__rl_policy_critic(p), q->obs, q->present, n, &q->critic, q->d_value,
                        q->grads + p->actor.n_params);
}

/* An allowed action by chance. */
static void any_action(dr__rl_iql *q, const uint8_t *mask, float *action)
{
    const dr__rl_heads *h = &q->policy->heads;
    for (int k = 0; k < h->n_categoricals; k++) {
        const uint8_t *allowed = mask + h->cat[k].mask;
        uint64_t n = 0;
        for (int i = 0; i < h->cat[k].n; i++)
            n += allowed[i] != 0;
        uint64_t left = n ? dr__rng_below(&q->rng, n) : 0;
        action[k] = 0;
        for (int i = 0; n && i < h->cat[k].n; i++)
            if (allowed[i] && !left--)
                action[k] = (float)i;
    }
    for (int i = h->action_at; i < h->n_action; i++)
        action[i] = (float)dr__rng_uniform(&q->rng, -1, 1);
}

static void draw_others(dr__rl_iql *q)
{
    const dr__rl_heads *h = &q->policy->heads;
    float action[DR__RL_ACTION];
    for (size_t r = 0; r < (size_t)q->set.batch; r++)
        for (size_t k = 0; k < DR__RL_CQL_OTHERS; k++) {
            const uint8_t *mask = q->masks + r * (size_t)h->n_mask;
            any_action(q, mask, action);
            dr__rl_q_input(h, q->obs + r * (size_t)h->n_obs, mask, action,
                           q->others + (r * DR__RL_CQL_OTHERS + k) * (size_t)q->q.sizes[0]);
        }
}

/* Adds the gradient of weight * (log of the sum of exp of the values of other actions and the recorded one, minus the value
 * of the recorded one); `d_value` gets that by the recorded ones. */
static void conservative_grad(dr__rl_iql *q, dr__rl_iql_q *one)
{
    const int n = q->set.batch, n_others = n * DR__RL_CQL_OTHERS;
    const double weight = q->set.cql_weight / n;
    const float *others = dr__rl_mlp_forward(&q->q, one->params, q->others, n_others, q->other_acts);
    for (int r = 0; r < n; r++) {
        const float *of = others + (size_t)r * DR__RL_CQL_OTHERS;
        float *d = q->d_others + (size_t)r * DR__RL_CQL_OTHERS;
        double most = one->values[r], sum;
        for (int k = 0; k < DR__RL_CQL_OTHERS; k++)
            most = DR_MAX(most, of[k]);
        sum = dr__exp(one->values[r] - most);
        for (int k = 0; k < DR__RL_CQL_OTHERS; k++)
            sum += dr__exp(of[k] - most);
        for (int k = 0; k < DR__RL_CQL_OTHERS; k++)
            d[k] = (float)(weight * dr__exp(of[k] - most) / sum);
        q->d_value[r] += (float)(weight * (dr__exp(one->values[r] - most) / sum - 1));
    }
    dr__rl_mlp_backward(&q->q, one->params, q->others, n_others, q->other_acts, q->d_others, one->grads, NULL,
                        q->scratch);
}

static void update_q(dr__rl_iql *q, dr__rl_iql_q *one, dr__rl_iql_progress *out)
{
    const int n = q->set.batch;
    memcpy(one->values, dr__rl_mlp_forward(&q->q, one->params, q->inputs, n, one->acts), (size_t)n * sizeof(float));
    memset(one->grads, 0, q->q.n_params * sizeof *one->grads);
    for (int r = 0; r < n; r++) {
        const float error = one->values[r] - q->targets[r];
        q->d_value[r] = 2 * error / (float)n;
        out->q_loss += 0.5 * error * error / n;
    }
    if (q->set.cql_weight > 0)
        conservative_grad(q, one);
    dr__rl_mlp_backward(&q->q, one->params, q->inputs, n, one->acts, q->d_value, one->grads, NULL, q->scratch);
    dr__rl_adam_step(&one->adam, one->params, one->grads, q->set.rate);
    dr__rl_follow(one->slow, one->params, q->q.n_params, q->set.follow);
}

static void update_qs(dr__rl_iql *q, dr__rl_iql_progress *out)
{
    for (int r = 0; r < q->set.batch; r++) {
        const uint32_t i = q->rows[r];
        q->targets[r] = q->data.rewards[i] + (q->data.terminated[i] ? 0 : (float)q->set.discount * q->next_values[r]);
    }
    if (q->set.cql_weight > 0)
        draw_others(q);
    for (int k = 0; k < 2; k++)
        update_q(q, &q->qs[k], out);
}

/* The gradient of the recorded actions' likelihood, weighed by exp(sharpness * advantage), at most 100. */
static void policy_grad(dr__rl_iql *q, dr__rl_iql_progress *out)
{
    const dr__rl_policy *p = q->policy;
    const dr__rl_heads *h = &p->heads;
    const int n = q->set.batch;
    const float *from = NULL;
    float action[DR__RL_ACTION];
    dr__rl_present(h, q->masks, n, q->present);
    const float *outputs = dr__rl_net_forward(&p->actor, p->params, q->obs, q->present, n, &q->actor);
    if (q->start)
        from = dr__rl_net_forward(&q->start->actor, q->start->params, q->obs, q->present, n, &q->start_tape);
    for (size_t r = 0; r < (size_t)n; r++) {
        const float *out_row = outputs + r * (size_t)h->n_out;
        const uint8_t *mask = q->masks + r * (size_t)h->n_mask;
        float *d = q->d_out + r * (size_t)h->n_out;
        const double weight = DR_MIN(dr__exp(DR_MIN(q->set.sharpness * q->advantages[r], 5.0)), 100.0);
        dr__rl_unsquash(h, q->actions + r * (size_t)h->n_action, action);
        dr__rl_head_grad(h, out_row, mask, action, -weight / n, 0, d);
        out->policy_loss -= weight * dr__rl_head_odds(h, out_row, mask, action).logp / n;
        if (from)
            out->pulled += dr__rl_head_pull(h, out_row, mask, from + r * (size_t)h->n_out, q->set.pull / n, d) / n;
    }
    dr__rl_net_backward(&p->actor, p->params, q->obs, q->present, n, &q->actor, q->d_out, q->grads);
}

void dr__rl_iql_update(dr__rl_iql *q, dr__rl_iql_progress *out)
{
    dr__rl_policy *p = q->policy;
    gather(q);
    memcpy(q->next_values, state_values(q, q->next_obs, q->next_masks), (size_t)q->set.batch * sizeof(float));
    memset(q->grads, 0, p->n_params * sizeof *q->grads);
    update_values(q, out);
    update_qs(q, out);
    policy_grad(q, out);
    dr__rl_adam_step(&q->adam, p->params, q->grads, q->set.rate);
    q->updates++;
}
