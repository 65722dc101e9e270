/* q_net.c: observation, options, continuous part. */
#include "rl/q_net.h"

#include <string.h>

int dr__rl_q_inputs(const dr__rl_heads *h)
{
    return h->n_obs + h->n_mask + h->n_continuous;
}

dr__rl_mlp dr__rl_q_shape(const dr__rl_heads *h, const int *hidden, int n_hidden, dr__rl_activation activation)
{
    return dr__rl_mlp_shape(dr__rl_q_inputs(h), hidden, n_hidden, 1, activation);
}

void dr__rl_q_input(const dr__rl_heads *h, const float *obs, const uint8_t *mask, const float *action, float *to)
{
    float *options = to + h->n_obs;
    memcpy(to, obs, (size_t)h->n_obs * sizeof *to);
    memset(options, 0, (size_t)h->n_mask * sizeof *to);
    for (int k = 0; k < h->n_categoricals; k++) {
        const int at = h->cat[k].mask + (int)action[k];
        options[at] = mask[at] ? 1 : 0;
    }
    memcpy(options + h->n_mask, action + h->action_at, (size_t)h->n_continuous * sizeof *to);
}

void dr__rl_follow(float *restrict to, const float *restrict from, size_t n, double rate)
{
    const float r = (float)rate;
    for (size_t i = 0; i < n; i++)
        to[i] += r * (from[i] - to[i]);
}
