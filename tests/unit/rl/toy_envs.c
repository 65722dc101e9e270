/* toy_envs.c: all of them keep a generator, a step number and a few floats. */
#include "unit/rl/toy_envs.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

typedef struct toy {
    dr_rng rng;
    int step, turn;
    float v[8];
    uint8_t forbidden[3];
} toy;

static dr_status open_toy(const void *arg, void **env, dr_error *err)
{
    toy *t = *env = dr__alloc_zero(1, sizeof *t);
    if (!t)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for a toy");
    t->turn = arg ? *(const int *)arg : 0;
    return DR_OK;
}

static void begin(toy *t, uint64_t seed)
{
    t->rng = dr__rng_open(&(dr__rng_name){ .seed = seed }, 7);
    t->step = 0;
}

/* --- reach --- */

static void reach_reset(void *env, uint64_t seed, float *obs, uint8_t *mask)
{
    toy *t = env;
    (void)mask;
    begin(t, seed);
    obs[0] = t->v[0] = (float)dr__rng_uniform(&t->rng, -1, 1);
    obs[1] = t->v[1] = (float)dr__rng_uniform(&t->rng, -1, 1);
}

static void reach_step(void *env, const float *action, float *obs, uint8_t *mask, dr__rl_outcome *o)
{
    toy *t = env;
    (void)mask;
    t->v[0] += 0.25f * action[0];
    obs[0] = t->v[0];
    obs[1] = t->v[1];
    o->reward = -fabsf(t->v[0] - t->v[1]);
    o->truncated = ++t->step == 16;
}

double toy_reach_best(uint64_t seed)
{
    toy t;
    float obs[2];
    double sum = 0;
    reach_reset(&t, seed, obs, NULL);
    for (int i = 0; i < 16; i++) {
        const float way = obs[1] - obs[0], action = fmaxf(-1, fminf(1, way / 0.25f));
        dr__rl_outcome o = { 0 };
        reach_step(&t, &action, obs, NULL, &o);
        sum += o.reward;
    }
    return sum;
}

const dr__rl_env_def *toy_reach(void)
{
    static const dr__rl_spec spec = { .name = "reach",
                                      .version = 1,
                                      .n_inputs = 2,
                                      .n_continuous = 1,
                                      .inputs = { "place", "target" },
                                      .continuous = { "move" } };
    static const dr__rl_env_def def = { "reach", &spec, open_toy, dr__free, reach_reset, reach_step };
    return &def;
}

/* --- locks --- */

static const int LOCK[3] = { 3, 4, 2 };
static atomic_long broken;

long toy_locks_broken(void)
{
    return atomic_load(&broken);
}

/* The last lock has two options, so none of it is forbidden. */
static void locks_show(toy *t, float *obs, uint8_t *mask)
{
    memset(obs, 0, 9 * sizeof *obs);
    memset(mask, 1, 9);
    for (int k = 0, at = 0; k < 3; at += LOCK[k++]) {
        const uint64_t n = (uint64_t)LOCK[k], right = dr__rng_below(&t->rng, n);
        const uint64_t wrong = (right + 1 + dr__rng_below(&t->rng, n - 1)) % n;
        t->v[k] = (float)right;
        t->forbidden[k] = k < 2 ? (uint8_t)wrong : 255;
        obs[at + (int)right] = 1;
        if (k < 2)
            mask[at + (int)wrong] = 0;
    }
}

static void locks_reset(void *env, uint64_t seed, float *obs, uint8_t *mask)
{
    begin(env, seed);
    locks_show(env, obs, mask);
}

static void locks_step(void *env, const float *action, float *obs, uint8_t *mask, dr__rl_outcome *o)
{
    toy *t = env;
    for (int k = 0; k < 3; k++) {
        o->reward += action[k] == t->v[k] ? 1.0f / 3 : 0;
        if ((uint8_t)action[k] == t->forbidden[k])
            atomic_fetch_add(&broken, 1);
    }
    o->terminated = ++t->step == 8;
    locks_show(t, obs, mask);
}

const dr__rl_env_def *toy_locks(void)
{
    static const dr__rl_spec spec = { .name = "locks",
                                      .version = 1,
                                      .n_inputs = 9,
                                      .n_choices = 3,
                                      .inputs = { "a0", "a1", "a2", "b0", "b1", "b2", "b3", "c0", "c1" },
                                      .choices = { { "a", 3 }, { "b", 4 }, { "c", 2 } } };
    static const dr__rl_env_def def = { "locks", &spec, open_toy, dr__free, locks_reset, locks_step };
    return &def;
}

/* --- ops --- */

static void ops_show(toy *t, float *obs, uint8_t *mask)
{
    obs[0] = (float)dr__rng_uniform(&t->rng, 0, 1);
    for (int k = 0; k < 4; k++) {
        const int op = (k + t->turn) % 4;
        const float noise = (float)dr__rng_uniform(&t->rng, 0, 0.3);
        obs[1 + 2 * k] = t->v[2 * k] = (op == 2 ? 1 : 0) + noise;
        obs[2 + 2 * k] = t->v[2 * k + 1] = (op == 2 ? 0 : 1) + noise;
        mask[2 * k] = mask[2 * k + 1] = op != 3;
    }
}

static void ops_reset(void *env, uint64_t seed, float *obs, uint8_t *mask)
{
    begin(env, seed);
    ops_show(env, obs, mask);
}

static void ops_step(void *env, const float *action, float *obs, uint8_t *mask, dr__rl_outcome *o)
{
    toy *t = env;
    for (int k = 0; k < 4; k++)
        if (mask[2 * k])
            o->reward -= t->v[2 * k + (action[k] > 0.5f)] - fminf(t->v[2 * k], t->v[2 * k + 1]);
    o->terminated = ++t->step == 6;
    ops_show(t, obs, mask);
}

const dr__rl_env_def *toy_ops(void)
{
    static const dr__rl_spec spec = { .name = "ops",
                                      .version = 1,
                                      .n_inputs = 1,
                                      .n_ops = 4,
                                      .n_op_inputs = 2,
                                      .n_op_choices = 1,
                                      .inputs = { "load" },
                                      .op_inputs = { "local_cost", "remote_cost" },
                                      .op_choices = { { "place", 2 } } };
    static const dr__rl_env_def def = { "ops", &spec, open_toy, dr__free, ops_reset, ops_step };
    return &def;
}

/* --- noise --- */

static void noise_reset(void *env, uint64_t seed, float *obs, uint8_t *mask)
{
    begin(env, seed);
    obs[0] = 1;
    mask[0] = mask[1] = 1;
}

static void noise_step(void *env, const float *action, float *obs, uint8_t *mask, dr__rl_outcome *o)
{
    toy *t = env;
    (void)mask;
    o->reward = 0.1f * action[0] + 3 * (float)dr__rng_normal(&t->rng);
    o->truncated = ++t->step == 32;
    obs[0] = 1;
}

const dr__rl_env_def *toy_noise(void)
{
    static const dr__rl_spec spec = { .name = "noise",
                                      .version = 1,
                                      .n_inputs = 1,
                                      .n_choices = 1,
                                      .inputs = { "one" },
                                      .choices = { { "arm", 2 } } };
    static const dr__rl_env_def def = { "noise", &spec, open_toy, dr__free, noise_reset, noise_step };
    return &def;
}

/* --- endless --- */

static void endless_step(void *env, const float *action, float *obs, uint8_t *mask, dr__rl_outcome *o)
{
    toy *t = env;
    (void)action;
    (void)mask;
    obs[0] = 1;
    o->reward = 1;
    o->truncated = ++t->step == 5;
}

const dr__rl_env_def *toy_endless(void)
{
    static const dr__rl_spec spec = { .name = "endless",
                                      .version = 1,
                                      .n_inputs = 1,
                                      .n_choices = 1,
                                      .inputs = { "one" },
                                      .choices = { { "any", 2 } } };
    static const dr__rl_env_def def = { "endless", &spec, open_toy, dr__free, noise_reset, endless_step };
    return &def;
}

/* --- joint --- */

static void joint_reset(void *env, uint64_t seed, float *obs, uint8_t *mask)
{
    toy *t = env;
    begin(t, seed);
    obs[0] = t->v[0] = (float)dr__rng_uniform(&t->rng, -1, 1);
    mask[0] = mask[1] = 1;
}

static void joint_step(void *env, const float *action, float *obs, uint8_t *mask, dr__rl_outcome *o)
{
    toy *t = env;
    (void)mask;
    o->reward = (float)((action[0] > 0.5f) == (t->v[0] > 0)) - fabsf(action[1] - 0.5f * t->v[0]);
    o->terminated = ++t->step == 4;
    obs[0] = t->v[0] = (float)dr__rng_uniform(&t->rng, -1, 1);
}

const dr__rl_env_def *toy_joint(void)
{
    static const dr__rl_spec spec = { .name = "joint",
                                      .version = 1,
                                      .n_inputs = 1,
                                      .n_choices = 1,
                                      .n_continuous = 1,
                                      .inputs = { "x" },
                                      .choices = { { "sign", 2 } },
                                      .continuous = { "half" } };
    static const dr__rl_env_def def = { "joint", &spec, open_toy, dr__free, joint_reset, joint_step };
    return &def;
}
