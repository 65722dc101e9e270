/* toy_cartpole.c: Euler's method, positions before speeds, in double. */
#include "unit/rl/toy_cartpole.h"

#include <math.h>

#include "base/alloc.h"
#include "base/fmath.h"

enum { LIMIT = 500 };

typedef struct cartpole {
    toy_cartpole_state s;
    int steps;
} cartpole;

static const dr__rl_spec SPEC = { .name = "cartpole",
                                  .version = 1,
                                  .n_inputs = 4,
                                  .n_choices = 1,
                                  .inputs = { "x", "x_dot", "theta", "theta_dot" },
                                  .choices = { { "push", 2 } } };

bool toy_cartpole_move(toy_cartpole_state *s, int right)
{
    const double gravity = 9.8, pole = 0.1, total = 1.1, length = 0.5, pole_length = pole * length, tau = 0.02;
    const double force = right ? 10 : -10, cos_theta = dr__cos(s->theta), sin_theta = dr__sin(s->theta);
    const double temp = (force + pole_length * (s->theta_dot * s->theta_dot) * sin_theta) / total;
    const double theta_acc =
        (gravity * sin_theta - cos_theta * temp) / (length * (4.0 / 3.0 - pole * (cos_theta * cos_theta) / total));
    const double x_acc = temp - pole_length * theta_acc * cos_theta / total;
    s->x += tau * s->x_dot;
    s->x_dot += tau * x_acc;
    s->theta += tau * s->theta_dot;
    s->theta_dot += tau * theta_acc;
    return fabs(s->x) > 2.4 || fabs(s->theta) > 12 * 2 * DR_PI / 360;
}

static dr_status open_cartpole(const void *arg, void **env, dr_error *err)
{
    (void)arg;
    *env = dr__alloc_zero(1, sizeof(cartpole));
    return *env ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "no memory for a cart");
}

static void show(const cartpole *c, float *obs)
{
    obs[0] = (float)c->s.x;
    obs[1] = (float)c->s.x_dot;
    obs[2] = (float)c->s.theta;
    obs[3] = (float)c->s.theta_dot;
}

static void reset(void *env, uint64_t seed, float *obs, uint8_t *mask)
{
    cartpole *c = env;
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = seed }, 0);
    c->steps = 0;
    c->s.x = dr__rng_uniform(&rng, -0.05, 0.05);
    c->s.x_dot = dr__rng_uniform(&rng, -0.05, 0.05);
    c->s.theta = dr__rng_uniform(&rng, -0.05, 0.05);
    c->s.theta_dot = dr__rng_uniform(&rng, -0.05, 0.05);
    mask[0] = mask[1] = 1;
    show(c, obs);
}

static void step(void *env, const float *action, float *obs, uint8_t *mask, dr__rl_outcome *outcome)
{
    cartpole *c = env;
    (void)mask;
    outcome->terminated = toy_cartpole_move(&c->s, action[0] > 0.5f);
    outcome->truncated = ++c->steps >= LIMIT;
    outcome->reward = 1;
    show(c, obs);
}

const dr__rl_env_def *toy_cartpole(void)
{
    static const dr__rl_env_def def = {
        .name = "cartpole", .spec = &SPEC, .open = open_cartpole, .close = dr__free, .reset = reset, .step = step
    };
    return &def;
}
