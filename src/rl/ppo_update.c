/* ppo_update.c: the clipped objective, its gradient, and steps along it. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/fmath.h"
#include "rl/ppo_internal.h"

/* The gradient of the value's loss: half of it that of the squared error, or of the larger one of two errors when the
 * value may not move further than value_clip from the old one. */
static float value_grad(const dr__rl_ppo *ppo, float value, float old, float target, double *loss)
{
    const float clip = (float)ppo->set.value_clip, error = value - target;
    *loss = (double)error * error;
    if (clip > 0) {
        const float held = old + DR_MIN(DR_MAX(value - old, -clip), clip), held_error = held - target;
        if (held_error * held_error > error * error) {
            *loss = (double)held_error * held_error;
            return held == value ? 2 * held_error : 0;
        }
    }
    return 2 * error;
}

/* Loss of one row, and its gradient by the outputs. */
static void row_grad(const dr__rl_ppo *ppo, dr__rl_ppo_part *part, int k, int row_at, const float *out, float value)
{
    const dr__rl_rollout *r = &ppo->rollout;
    const dr__rl_heads *h = &ppo->policy->heads;
    const size_t i = ppo->rows[row_at];
    const float *action = r->actions + i * (size_t)h->n_action;
    const uint8_t *mask = part->masks + (size_t)k * (size_t)h->n_mask;
    const double share = 1.0 / ppo->n_minibatch, advantage = ppo->scaled[row_at];
    const dr__rl_odds odds = dr__rl_head_odds(h, out, mask, action);
    const double log_ratio = DR_MIN(DR_MAX(odds.logp - r->logps[i], -20.0), 20.0), ratio = dr__exp(log_ratio);
    const double held = DR_MIN(DR_MAX(ratio, 1 - ppo->clip), 1 + ppo->clip);
    const bool flat = held * advantage < ratio * advantage; /* clipped where that is the smaller one */
    double value_loss;
    dr__rl_head_grad(h, out, mask, action, flat ? 0 : -advantage * ratio * share, -ppo->entropy * share,
                     part->d_out + (size_t)k * (size_t)h->n_out);
    part->d_value[k] =
        (float)(ppo->set.value_weight * share) * value_grad(ppo, value, r->values[i], ppo->returns[i], &value_loss);
    part->policy_loss -= DR_MIN(held * advantage, ratio * advantage);
    part->value_loss += value_loss;
    part->entropy += odds.entropy;
    part->kl += ratio - 1 - log_ratio;
    part->clipped += held != ratio;
}

static void part_grad(void *owner, int number)
{
    dr__rl_ppo *ppo = owner;
    dr__rl_ppo_part *part = &ppo->parts[number];
    const dr__rl_policy *p = ppo->policy;
    const dr__rl_heads *h = &p->heads;
    const int first = number * ppo->part_rows, n = DR_MIN(first + ppo->part_rows, ppo->n_minibatch) - first;
    part->policy_loss = part->value_loss = part->entropy = part->kl = part->clipped = 0;
    memset(part->grads, 0, p->n_params * sizeof *part->grads);
    for (int k = 0; k < n; k++) {
        const size_t i = ppo->rows[first + k];
        memcpy(part->obs + (size_t)k * (size_t)h->n_obs, ppo->rollout.obs + i * (size_t)h->n_obs,
               (size_t)h->n_obs * sizeof(float));
        memcpy(part->masks + (size_t)k * (size_t)h->n_mask, ppo->rollout.masks + i * (size_t)h->n_mask,
               (size_t)h->n_mask);
    }
    if (n < 1)
        return;
    dr__rl_present(h, part->masks, n, part->present);
    const float *out = dr__rl_net_forward(&p->actor, p->params, part->obs, part->present, n, &part->actor);
    const float *values =
        dr__rl_net_forward(&p->critic, dr__rl_policy_critic(p), part->obs, part->present, n, &part->critic);
    for (int k = 0; k < n; k++)
        row_grad(ppo, part, k, first + k, out + (size_t)k * (size_t)h->n_out, values[k]);
    dr__rl_net_backward(&p->actor, p->params, part->obs, part->present, n, &part->actor, part->d_out, part->grads);
    dr__rl_net_backward(&p->critic, dr__rl_policy_critic(p), part->obs, part->present, n, &part->critic, part->d_value,
                        part->grads + p->actor.n_params);
}

/* Advantages of the minibatch with mean 0 and deviation 1. */
static void scale_advantages(dr__rl_ppo *ppo)
{
    double sum = 0, squares = 0;
    const int n = ppo->n_minibatch;
    for (int k = 0; k < n; k++)
        sum += ppo->advantages[ppo->rows[k]];
    const double mean = sum / n;
    for (int k = 0; k < n; k++) {
        const double apart = ppo->advantages[ppo->rows[k]] - mean;
        squares += apart * apart;
    }
    const double scale = n > 1 ? 1 / (sqrt(squares / (n - 1)) + 1e-8) : 1;
    for (int k = 0; k < n; k++)
        ppo->scaled[k] = (float)((ppo->advantages[ppo->rows[k]] - mean) * scale);
}

static void add_up(dr__rl_ppo *ppo, dr__rl_ppo_part *sum)
{
    float *grads = ppo->parts[0].grads;
    *sum = ppo->parts[0];
    for (int i = 1; i < ppo->set.parts; i++) {
        const dr__rl_ppo_part *part = &ppo->parts[i];
        const float *more = part->grads;
        for (size_t k = 0; k < ppo->policy->n_params; k++)
            grads[k] += more[k];
        sum->policy_loss += part->policy_loss;
        sum->value_loss += part->value_loss;
        sum->entropy += part->entropy;
        sum->kl += part->kl;
        sum->clipped += part->clipped;
    }
}

/* One minibatch; false when the policy has moved far enough. */
static bool step(dr__rl_ppo *ppo, const uint32_t *rows, int n, double rate, dr__rl_ppo_progress *out)
{
    dr__rl_ppo_part sum;
    ppo->rows = rows;
    ppo->n_minibatch = n;
    scale_advantages(ppo);
    dr__rl_team_run(ppo->team, part_grad, ppo, ppo->set.parts);
    add_up(ppo, &sum);
    out->kl = sum.kl / n;
    if (ppo->set.max_kl > 0 && out->kl > ppo->set.max_kl)
        return false;
    const double norm = dr__rl_clip_norm(sum.grads, ppo->policy->n_params, ppo->set.max_norm);
    if (!isfinite(norm)) {
        out->skipped++;
        return true;
    }
    dr__rl_adam_step(&ppo->adam, ppo->policy->params, sum.grads, rate);
    out->policy_loss += sum.policy_loss / n;
    out->value_loss += sum.value_loss / n;
    out->entropy += sum.entropy / n;
    out->clipped += sum.clipped / n;
    out->norm += norm;
    out->updates++;
    return true;
}

static void shuffle(dr__rl_ppo *ppo)
{
    for (int i = ppo->n_rows - 1; i > 0; i--) {
        const uint32_t k = (uint32_t)dr__rng_below(&ppo->rng, (uint64_t)i + 1), swap = ppo->order[i];
        ppo->order[i] = ppo->order[k];
        ppo->order[k] = swap;
    }
}

static void take_steps(dr__rl_ppo *ppo, double rate, dr__rl_ppo_progress *out)
{
    for (int epoch = 0; epoch < ppo->set.epochs; epoch++) {
        shuffle(ppo);
        for (int at = 0; at < ppo->n_rows; at += ppo->minibatch)
            if (!step(ppo, ppo->order + at, DR_MIN(ppo->minibatch, ppo->n_rows - at), rate, out))
                return;
    }
}

void dr__rl_ppo_update(dr__rl_ppo *ppo, double rate, dr__rl_ppo_progress *out)
{
    take_steps(ppo, rate, out);
    const double n = DR_MAX(out->updates, 1);
    out->policy_loss /= n;
    out->value_loss /= n;
    out->entropy /= n;
    out->clipped /= n;
    out->norm /= n;
}
