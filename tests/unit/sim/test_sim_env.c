/* Environments: steps, masks, seeds, rewards. */
#include "unit/cm.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "sched/features.h"
#include "sim/twin.h"

enum { N_ACTIONS = 7, WORKERS = 0, READERS = 1, PREFETCH = 2 };

static const int32_t keep[N_ACTIONS] = { 2, 1, 1, 1, 1, 1, 1 };
static dr_error err;

static dr_sim_env *open_env(const char *scenario, const char *base, const char *set, size_t n)
{
    dr_sim_env_options o;
    dr_sim_env *env;
    dr_sim_env_defaults(&o);
    o.of.scenario = scenario;
    o.of.machine = "rtx3090x4";
    o.of.set = set;
    o.base = base;
    o.n = n;
    o.seconds = 20;
    assert_ok(dr_sim_env_open(&o, &env, &err));
    return env;
}

static void test_sizes(void **state)
{
    (void)state;
    int choices[N_ACTIONS];
    assert_int_equal(dr_sim_env_actions(choices, N_ACTIONS), N_ACTIONS);
    assert_int_equal(choices[WORKERS], 5);
    assert_int_equal(dr_sim_env_observation(), DR__N_FEATURES);
    assert_non_null(strstr(dr_sim_env_json(), "\"knob_workers\""));
    assert_non_null(strstr(dr_sim_json(), "\"stationary\""));
}

/* The sum of rewards of an episode, and its observations' sum; actions by a seed, or "keep" with seed 0. */
static double episode(dr_sim_env *env, size_t i, uint64_t seed, uint64_t actions, double *sum)
{
    float x[DR__N_FEATURES];
    double all = 0, reward;
    bool over = false;
    dr__sim_rng rng;
    dr__sim_seed(&rng, actions);
    dr_sim_env_reset(env, i, seed, x);
    int steps = 0;
    for (*sum = 0; !over; steps++) {
        int32_t action[N_ACTIONS];
        for (int k = 0; k < N_ACTIONS; k++)
            action[k] = actions ? (int32_t)(dr__sim_unit(&rng) * (k == WORKERS ? 5 : 3)) : keep[k];
        over = dr_sim_env_step(env, i, action, x, &reward);
        assert_true(isfinite(reward) && fabs(reward) < 10);
        all += reward;
        for (int k = 0; k < DR__N_FEATURES; k++) {
            assert_true(x[k] >= -4 && x[k] <= 4);
            *sum += (double)x[k];
        }
    }
    assert_int_equal(steps, 20);
    return all;
}

static void test_same_seed_same_episode(void **state)
{
    (void)state;
    dr_sim_env *env = open_env("bursts", NULL, NULL, 2);
    double a, b, c;
    const double first = episode(env, 0, 5, 9, &a), again = episode(env, 1, 5, 9, &b),
                 other = episode(env, 0, 6, 9, &c);
    assert_true(first == again && a == b && first != other && a != c);
    dr_sim_env_close(&env);
    assert_null(env);
}

/* An action counts: it changes the knob that it names by what it says. */
static void test_actions_change_knobs(void **state)
{
    (void)state;
    dr_sim_env *env = open_env("plain", NULL, "workers=8,readers=4,prefetch=4", 1);
    float x[DR__N_FEATURES];
    double reward;
    int32_t action[N_ACTIONS];
    memcpy(action, keep, sizeof action);
    action[WORKERS] = 4;  /* two steps of 32 / 16 */
    action[READERS] = 0;  /* half */
    action[PREFETCH] = 2; /* x 1.5 */
    dr_sim_env_reset(env, 0, 1, x);
    dr_sim_env_step(env, 0, action, x, &reward);
    const dr_sim *s = dr_sim_env_sim(env, 0);
    assert_true(s->knob[DR_KNOB_WORKERS] == 12 && s->knob[DR_KNOB_READERS] == 2 && s->knob[DR_KNOB_PREFETCH] == 6);
    dr_sim_env_step(env, 0, keep, x, &reward);
    assert_true(s->knob[DR_KNOB_WORKERS] == 12);
    const int32_t wrong[N_ACTIONS] = { 99, -1, 3, 3, 3, 3, 3 };
    dr_sim_env_step(env, 0, wrong, x, &reward);
    assert_true(s->knob[DR_KNOB_WORKERS] == 12 && s->knob[DR_KNOB_READERS] == 2 && s->knob[DR_KNOB_PREFETCH] == 6);
    dr_sim_env_close(&env);
}

static void test_masks(void **state)
{
    (void)state;
    dr_sim_env *env = open_env("plain", NULL, "workers=1,readers=0", 1);
    float x[DR__N_FEATURES];
    uint8_t mask[5 + 6 * 3];
    dr_sim_env_reset(env, 0, 1, x);
    dr_sim_env_mask(env, 0, mask);
    const uint8_t workers[] = { 0, 0, 1, 1, 1 }, readers[] = { 0, 1, 1 }, none[] = { 0, 1, 0 };
    assert_memory_equal(mask, workers, 5);
    assert_memory_equal(mask + 5, readers, 3);
    assert_memory_equal(mask + 20, none, 3); /* offload: there is no server */
    dr_sim_env_close(&env);
}

/* More workers than too few are rewarded. */
static void test_reward_is_of_what_happens(void **state)
{
    (void)state;
    double sum;
    dr_sim_env *few = open_env("stationary", NULL, "workers=1", 1),
               *many = open_env("stationary", NULL, "workers=24", 1);
    assert_true(episode(many, 0, 3, 0, &sum) > episode(few, 0, 3, 0, &sum) + 2);
    dr_sim_env_close(&few);
    dr_sim_env_close(&many);
}

/* With a base policy and no changes, that policy runs. */
static void test_base_policy(void **state)
{
    (void)state;
    double sum;
    dr_sim_env *alone = open_env("stationary", NULL, "workers=1", 1),
               *with = open_env("stationary", "analytic", "workers=1", 1);
    assert_true(episode(with, 0, 3, 0, &sum) > episode(alone, 0, 3, 0, &sum) + 2);
    assert_true(dr_sim_env_sim(with, 0)->knob[DR_KNOB_WORKERS] > 1);
    dr_sim_env_close(&alone);
    dr_sim_env_close(&with);
}

/* Random agents everywhere: numbers stay in their ranges, and nothing is allocated in an episode. */
static void test_random_agents(void **state)
{
    (void)state;
    for (const dr__sim_scenario *c = dr__sim_scenarios; c->name; c++) {
        double sum;
        dr_sim_env *env = open_env(c->name, "stages", NULL, 1);
        dr__alloc_fail_at(0, false);
        episode(env, 0, 11, 13, &sum);
        assert_true(dr__alloc_fail_at(0, false) == 0);
        dr_sim_env_close(&env);
    }
}

static void test_wrong_options(void **state)
{
    (void)state;
    dr_sim_env_options o;
    dr_sim_env *env;
    dr_sim_env_defaults(&o);
    o.n = 0;
    assert_fails(dr_sim_env_open(&o, &env, &err), DR_ERR_ARG, "n must be 1");
    o.n = 1;
    o.seconds = NAN;
    assert_fails(dr_sim_env_open(&o, &env, &err), DR_ERR_ARG, "seconds must be");
    o.seconds = 10;
    o.base = "genius";
    assert_fails(dr_sim_env_open(&o, &env, &err), DR_ERR_ARG, "genius");
    o.base = "analytic";
    o.of.workload = "none";
    assert_fails(dr_sim_env_open(&o, &env, &err), DR_ERR_ARG, "workload must be one of image");
    o.of.workload = NULL;
    o.n = 3;
    for (int n = 1; n <= 8; n++) { /* env, list, and for each a simulation and a state */
        dr__alloc_fail_at(n, true);
        const dr_status status = dr_sim_env_open(&o, &env, &err);
        dr__alloc_fail_at(0, false);
        assert_int_equal(status, DR_ERR_NOMEM);
        assert_null(env);
    }
    assert_ok(dr_sim_env_open(&o, &env, &err));
    dr_sim_env_close(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_same_seed_same_episode),
        cmocka_unit_test(test_actions_change_knobs),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_reward_is_of_what_happens),
        cmocka_unit_test(test_base_policy),
        cmocka_unit_test(test_random_agents),
        cmocka_unit_test(test_wrong_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
