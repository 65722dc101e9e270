/* fqe.c: one network, its slow copy, and the policy's actions in the states that follow. */
#include "rl/fqe.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "rl/adam.h"
#include "rl/obs_norm.h"
#include "rl/q_net.h"

typedef struct fqe {
    const dr__rl_fqe_settings *set;
    dr__rl_policy *policy;
    const dr__rl_data *data;
    dr__rl_mlp q;
    dr_rng rng;
    float *params, *slow, *grads, *acts, *inputs, *next_inputs, *rewards, *goes_on, *d_value, *scratch, *obs;
    dr__rl_adam adam;
    dr__rl_arena arena;
} fqe;

dr__rl_fqe_settings dr__rl_fqe_defaults(void)
{
    return (dr__rl_fqe_settings){ .hidden = { 64, 64 },
                                  .batch = 128,
                                  .updates = 10000,
                                  .rate = 1e-3,
                                  .discount = 0.98,
                                  .follow = 0.01,
                                  .draw = true };
}

static dr_status check(const dr__rl_fqe_settings *s, int n_starts, dr_error *err)
{
    for (int i = 0; i < 2; i++)
        if (s->hidden[i] < 1 || s->hidden[i] > DR__RL_HIDDEN)
            return dr__fail(err, DR_ERR_ARG, "hidden layer %d must be 1 to %d wide, got %d", i, DR__RL_HIDDEN,
                            s->hidden[i]);
    if (s->batch < 1 || s->batch > 65536 || s->updates < 1 || n_starts < 1)
        return dr__fail(err, DR_ERR_ARG, "batch (up to 65536), updates and starts must be at least 1, got %d, %d and %d",
                        s->batch, s->updates, n_starts);
    if (!(s->rate >= 0 && s->rate <= 1 && s->discount >= 0 && s->discount <= 1 && s->follow >= 0 && s->follow <= 1))
        return dr__fail(err, DR_ERR_ARG, "rate, discount and follow must be between 0 and 1, got %g, %g and %g", s->rate,
                        s->discount, s->follow);
    return DR_OK;
}

static void lay_out(void *owner, dr__rl_arena *arena)
{
    fqe *f = owner;
    const size_t n = (size_t)f->set->batch, width = (size_t)f->q.sizes[0];
    f->params = dr__rl_take_floats(arena, f->q.n_params);
    f->slow = dr__rl_take_floats(arena, f->q.n_params);
    f->grads = dr__rl_take_floats(arena, f->q.n_params);
    f->adam.n = f->q.n_params;
    f->adam.first = dr__rl_take_floats(arena, f->q.n_params);
    f->adam.second = dr__rl_take_floats(arena, f->q.n_params);
    f->acts = dr__rl_take_floats(arena, dr__rl_mlp_acts(&f->q, f->set->batch));
    f->inputs = dr__rl_take_floats(arena, n * width);
    f->next_inputs = dr__rl_take_floats(arena, n * width);
    f->rewards = dr__rl_take_floats(arena, n);
    f->goes_on = dr__rl_take_floats(arena, n);
    f->d_value = dr__rl_take_floats(arena, n);
    f->scratch = dr__rl_take_floats(arena, dr__rl_mlp_scratch(&f->q, f->set->batch));
    f->obs = dr__rl_take_floats(arena, (size_t)f->policy->heads.n_obs);
}

/* Inputs for an observation as it came; without an action, the policy's. */
static void make_inputs(fqe *f, const float *obs, const uint8_t *mask, const float *action, float *to)
{
    const dr__rl_policy *p = f->policy;
    float drawn[DR__RL_ACTION];
    if (!action)
        dr__rl_policy_act(f->policy, obs, mask, f->set->draw ? &f->rng : NULL, drawn);
    dr__rl_normalise(p->mean, p->scale, p->heads.n_obs, obs, f->obs);
    dr__rl_q_input(&p->heads, f->obs, mask, action ? action : drawn, to);
}

static void gather(fqe *f)
{
    const dr__rl_heads *h = &f->policy->heads;
    const dr__rl_data *d = f->data;
    const size_t width = (size_t)f->q.sizes[0], n_obs = (size_t)h->n_obs, n_mask = (size_t)h->n_mask;
    for (size_t r = 0; r < (size_t)f->set->batch; r++) {
        const size_t i = dr__rng_below(&f->rng, (uint64_t)d->n);
        const uint8_t *mask = n_mask ? d->masks + i * n_mask : NULL, *next = n_mask ? d->next_masks + i * n_mask : NULL;
        make_inputs(f, d->obs + i * n_obs, mask, d->actions + i * (size_t)h->n_action, f->inputs + r * width);
        make_inputs(f, d->next_obs + i * n_obs, next, NULL, f->next_inputs + r * width);
        f->rewards[r] = d->rewards[i];
        f->goes_on[r] = d->terminated[i] ? 0 : (float)f->set->discount;
    }
}

static void update(fqe *f, double rate)
{
    const int n = f->set->batch;
    gather(f);
    const float *later = dr__rl_mlp_forward(&f->q, f->slow, f->next_inputs, n, f->acts);
    for (int r = 0; r < n; r++)
        f->rewards[r] += f->goes_on[r] * later[r];
    const float *values = dr__rl_mlp_forward(&f->q, f->params, f->inputs, n, f->acts);
    for (int r = 0; r < n; r++)
        f->d_value[r] = 2 * (values[r] - f->rewards[r]) / (float)n;
    memset(f->grads, 0, f->q.n_params * sizeof *f->grads);
    dr__rl_mlp_backward(&f->q, f->params, f->inputs, n, f->acts, f->d_value, f->grads, NULL, f->scratch);
    dr__rl_adam_step(&f->adam, f->params, f->grads, rate);
    dr__rl_follow(f->slow, f->params, f->q.n_params, f->set->follow);
}

static double value_of(fqe *f, const float *starts, const uint8_t *masks, int n)
{
    const dr__rl_heads *h = &f->policy->heads;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const uint8_t *mask = h->n_mask ? masks + (size_t)i * (size_t)h->n_mask : NULL;
        make_inputs(f, starts + (size_t)i * (size_t)h->n_obs, mask, NULL, f->inputs);
        sum += dr__rl_mlp_forward(&f->q, f->slow, f->inputs, 1, f->acts)[0];
    }
    return sum / n;
}

dr_status dr__rl_fqe(dr__rl_policy *policy, const dr__rl_data *data, const dr__rl_fqe_settings *settings,
                     const float *starts, const uint8_t *start_masks, int n_starts, double *value, dr_error *err)
{
    fqe f = { .set = settings, .policy = policy, .data = data };
    DR_TRY(check(settings, n_starts, err));
    DR_TRY(dr__rl_data_check(data, &policy->heads, err));
    f.q = dr__rl_q_shape(&policy->heads, settings->hidden, 2, DR__RL_TANH);
    f.rng = dr__rng_open(&(dr__rng_name){ .seed = settings->seed }, 6);
    if (!dr__rl_arena_fill(&f.arena, lay_out, &f))
        return dr__fail(err, DR_ERR_NOMEM, "no memory for batches of %d", settings->batch);
    dr__rl_mlp_init(&f.q, f.params, sqrt(2), 1, &f.rng);
    memcpy(f.slow, f.params, f.q.n_params * sizeof(float));
    for (int i = 0; i < settings->updates; i++)
        update(&f, settings->rate * (1 - (double)i / settings->updates));
    *value = value_of(&f, starts, start_masks, n_starts);
    dr__rl_arena_free(&f.arena);
    return DR_OK;
}
