/* offline_data.c: rows are checked once, so that training need not. */
#include "rl/offline_data.h"

#include <math.h>

static bool all_finite(const float *row, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(row[i]))
            return false;
    return true;
}

/* A row of choices of which each is an allowed option, or 0 where none is. */
static bool are_choices(const dr__rl_heads *h, const float *action, const uint8_t *mask)
{
    for (int k = 0; k < h->n_categoricals; k++) {
        const uint8_t *allowed = mask + h->cat[k].mask;
        uint8_t any = 0;
        for (int i = 0; i < h->cat[k].n; i++)
            any |= allowed[i];
        if (!(action[k] >= 0 && action[k] < (float)h->cat[k].n) || action[k] != floorf(action[k]))
            return false;
        if (any ? !allowed[(int)action[k]] : action[k] != 0)
            return false;
    }
    for (int i = h->action_at; i < h->n_action; i++)
        if (!(fabsf(action[i]) <= 1))
            return false;
    return true;
}

dr_status dr__rl_data_check(const dr__rl_data *d, const dr__rl_heads *h, dr_error *err)
{
    if (d->n < 1)
        return dr__fail(err, DR_ERR_ARG, "recorded steps must be at least 1, got %d", d->n);
    for (int i = 0; i < d->n; i++) {
        const size_t at = (size_t)i * (size_t)h->n_obs;
        if (!all_finite(d->obs + at, h->n_obs) || !all_finite(d->next_obs + at, h->n_obs) || !isfinite(d->rewards[i]))
            return dr__fail(err, DR_ERR_ARG, "recorded step %d has a number that is not finite", i);
        if (!are_choices(h, d->actions + (size_t)i * (size_t)h->n_action, d->masks + (size_t)i * (size_t)h->n_mask))
            return dr__fail(err, DR_ERR_ARG, "recorded step %d has an action that is not allowed", i);
    }
    return DR_OK;
}
