/* sac_update.c: targets, critics, and the actor through the critics. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/fmath.h"
#include "rl/head.h"
#include "rl/rl_math.h"
#include "rl/sac_internal.h"

static const double HALF_LOG_2PI = 0.91893853320467274178;

/* Actions of the policy for the batch's observations, squashed, with the noise that made them and their log-probabilities;
 * they become the second part of the critics' inputs.  Returns the actor's outputs. */
static const float *draw_actions(dr__rl_sac *s)
{
    const dr__rl_heads *h = &s->policy->heads;
    const float *out = dr__rl_net_forward(&s->policy->actor, s->policy->params, s->batch_obs, NULL, s->set.batch, &s->tape);
    for (int r = 0; r < s->set.batch; r++) {
        const float *row = out + (size_t)r * (size_t)h->n_out;
        float *action = s->action + (size_t)r * (size_t)h->n_action;
        double logp = 0;
        for (int i = 0; i < h->n_continuous; i++) {
            const float log_std = DR_MIN(DR_MAX(row[h->std_at + i], DR__RL_LOG_STD_MIN), DR__RL_LOG_STD_MAX);
            const double noise = dr__rng_normal(&s->rng), u = row[h->mean_at + i] + dr__exp(log_std) * noise;
            s->noise[r * h->n_continuous + i] = (float)noise;
            action[i] = dr__rl_tanh((float)u);
            logp -= 0.5 * noise * noise + log_std + HALF_LOG_2PI + dr__rl_log_slope(u);
        }
        s->logps[r] = (float)logp;
        dr__rl_q_input(h, s->batch_obs + (size_t)r * (size_t)h->n_obs, NULL, action,
                       s->inputs + (size_t)r * (size_t)s->q.sizes[0]);
    }
    return out;
}

static void gather(dr__rl_sac *s, const float *from, int width, float *to)
{
    for (int r = 0; r < s->set.batch; r++)
        memcpy(to + (size_t)r * (size_t)width, from + (size_t)s->rows[r] * (size_t)width, (size_t)width * sizeof *to);
}

static void values_of(dr__rl_sac *s, bool slow)
{
    for (int k = 0; k < 2; k++) {
        dr__rl_sac_critic *c = &s->critics[k];
        const float *params = slow ? c->slow : c->params;
        memcpy(s->values[k], dr__rl_mlp_forward(&s->q, params, s->inputs, s->set.batch, c->acts),
               (size_t)s->set.batch * sizeof(float));
    }
}

static void find_targets(dr__rl_sac *s)
{
    gather(s, s->next_obs, s->policy->heads.n_obs, s->batch_obs);
    draw_actions(s);
    values_of(s, true);
    const float weight = dr__rl_exp(s->log_weight), discount = (float)s->set.discount;
    for (int r = 0; r < s->set.batch; r++) {
        const uint32_t i = s->rows[r];
        const float later = DR_MIN(s->values[0][r], s->values[1][r]) - weight * s->logps[r];
        s->targets[r] = s->rewards[i] + (s->terminated[i] ? 0 : discount * later);
    }
}

static void update_critics(dr__rl_sac *s, dr__rl_sac_progress *out)
{
    const dr__rl_heads *h = &s->policy->heads;
    const int n = s->set.batch;
    gather(s, s->obs, h->n_obs, s->batch_obs);
    gather(s, s->actions, h->n_action, s->action);
    for (int r = 0; r < n; r++)
        dr__rl_q_input(h, s->batch_obs + (size_t)r * (size_t)h->n_obs, NULL, s->action + (size_t)r * (size_t)h->n_action,
                       s->inputs + (size_t)r * (size_t)s->q.sizes[0]);
    values_of(s, false);
    for (int k = 0; k < 2; k++) {
        dr__rl_sac_critic *c = &s->critics[k];
        for (int r = 0; r < n; r++) {
            const float error = s->values[k][r] - s->targets[r];
            s->d_value[r] = 2 * error / (float)n;
            out->q_loss += (double)error * error / (2 * n);
        }
        memset(c->grads, 0, s->q.n_params * sizeof *c->grads);
        dr__rl_mlp_backward(&s->q, c->params, s->inputs, n, c->acts, s->d_value, c->grads, NULL, s->scratch);
        dr__rl_adam_step(&c->adam, c->params, c->grads, s->set.rate);
        dr__rl_follow(c->slow, c->params, s->q.n_params, s->set.follow);
    }
}

/* Adds to d_inputs minus the gradient of the mean of the smaller value. */
static void through_critics(dr__rl_sac *s, float *d_sum)
{
    const size_t width = (size_t)s->q.sizes[0];
    const int n = s->set.batch;
    values_of(s, false);
    memset(d_sum, 0, (size_t)n * width * sizeof *d_sum);
    for (int k = 0; k < 2; k++) {
        for (int r = 0; r < n; r++) {
            const bool is_smaller = k ? s->values[1][r] < s->values[0][r] : s->values[0][r] <= s->values[1][r];
            s->d_value[r] = is_smaller ? -1 / (float)n : 0;
        }
        dr__rl_mlp_backward(&s->q, s->critics[k].params, s->inputs, n, s->critics[k].acts, s->d_value, NULL, s->d_inputs,
                            s->scratch);
        for (size_t i = 0; i < (size_t)n * width; i++)
            d_sum[i] += s->d_inputs[i];
    }
}

/* The loss is weight * logp - value.  By u: through the action, and through the slope of tanh in logp; u itself is
 * mean + deviation * noise. */
static void update_actor(dr__rl_sac *s, float *d_sum)
{
    const dr__rl_heads *h = &s->policy->heads;
    const int n = s->set.batch, width = s->q.sizes[0];
    const float *out = draw_actions(s);
    const float weight = dr__rl_exp(s->log_weight) / (float)n;
    through_critics(s, d_sum);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < h->n_continuous; i++) {
            const float raw = out[r * h->n_out + h->std_at + i];
            const float log_std = DR_MIN(DR_MAX(raw, DR__RL_LOG_STD_MIN), DR__RL_LOG_STD_MAX);
            const float a = s->action[r * h->n_action + i];
            const float by_u = d_sum[r * width + h->n_obs + i] * (1 - a * a) + weight * 2 * a;
            float *d = s->d_out + (size_t)r * (size_t)h->n_out;
            d[h->mean_at + i] = by_u;
            d[h->std_at + i] =
                raw == log_std ? by_u * dr__rl_exp(log_std) * s->noise[r * h->n_continuous + i] - weight : 0;
        }
    memset(s->actor_grads, 0, s->policy->actor.n_params * sizeof(float));
    dr__rl_net_backward(&s->policy->actor, s->policy->params, s->batch_obs, NULL, n, &s->tape, s->d_out, s->actor_grads);
    dr__rl_adam_step(&s->actor_adam, s->policy->params, s->actor_grads, s->set.rate);
}

static void update_weight(dr__rl_sac *s, dr__rl_sac_progress *out)
{
    double logp = 0;
    for (int r = 0; r < s->set.batch; r++)
        logp += s->logps[r] / (double)s->set.batch;
    const float grad = (float)-(logp + s->set.entropy * s->policy->heads.n_continuous);
    dr__rl_adam_step(&s->weight_adam, &s->log_weight, &grad, s->set.rate);
    out->logp = logp;
    out->entropy_weight = dr__rl_exp(s->log_weight);
}

void dr__rl_sac_update(dr__rl_sac *s, dr__rl_sac_progress *out)
{
    for (int r = 0; r < s->set.batch; r++)
        s->rows[r] = (uint32_t)dr__rng_below(&s->rng, (uint64_t)s->n);
    find_targets(s);
    update_critics(s, out);
    update_actor(s, s->d_inputs + (size_t)s->set.batch * (size_t)s->q.sizes[0]);
    update_weight(s, out);
}
