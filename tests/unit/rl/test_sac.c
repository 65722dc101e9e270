/* Soft actor-critic on a toy whose best policy is known. */
#include "rl/sac.h"

#include "unit/cm.h"

#include "base/alloc.h"
#include "rl/rollout.h"
#include "unit/rl/toy_envs.h"

static dr_error err;

static void a_point_reaches_its_target(void **state)
{
    (void)state;
    dr__rl_sac *sac;
    dr__rl_sac_progress progress;
    const dr__rl_sac_settings s = dr__rl_sac_defaults();
    double best = 0, mean;
    assert_ok(dr__rl_sac_new(toy_reach(), NULL, &s, &sac, &err));
    dr__rl_sac_run(sac, 6000, &progress);
    for (int i = 0; i < 200; i++)
        best += toy_reach_best(1000000 + (uint64_t)i) / 200;
    assert_ok(dr__rl_evaluate(toy_reach(), NULL, dr__rl_sac_policy(sac), 200, 1000000, false, NULL, &mean, &err));
    print_message("mean return %.2f after 6000 steps, %.2f at best\n", mean, best);
    assert_true(mean > best - 0.4);
    assert_true(progress.entropy_weight < 0.1); /* exp(-1) at first: it adapts */
    assert_int_equal(progress.steps, 6000);
    dr__rl_sac_free(&sac);
}

static void a_seed_gives_the_same_policy(void **state)
{
    (void)state;
    dr__rl_sac *sac[3];
    dr__rl_sac_progress progress;
    dr__rl_sac_settings s = dr__rl_sac_defaults();
    s.warm_up = 100;
    for (int i = 0; i < 3; i++) {
        s.seed = i == 2;
        assert_ok(dr__rl_sac_new(toy_reach(), NULL, &s, &sac[i], &err));
        dr__rl_sac_run(sac[i], 300, &progress);
    }
    const dr__rl_policy *p = dr__rl_sac_policy(sac[0]);
    assert_memory_equal(p->params, dr__rl_sac_policy(sac[1])->params, p->n_params * sizeof *p->params);
    assert_memory_not_equal(p->params, dr__rl_sac_policy(sac[2])->params, p->n_params * sizeof *p->params);
    for (int i = 0; i < 3; i++)
        dr__rl_sac_free(&sac[i]);
}

static void what_it_cannot_do_is_refused(void **state)
{
    (void)state;
    dr__rl_sac *sac;
    dr__rl_sac_settings s = dr__rl_sac_defaults();
    assert_fails(dr__rl_sac_new(toy_joint(), NULL, &s, &sac, &err), DR_ERR_ARG, "'joint' has choices");
    s.batch = 0;
    assert_fails(dr__rl_sac_new(toy_reach(), NULL, &s, &sac, &err), DR_ERR_ARG, "at least 1, got 100000, 0 and 500");
}

static void short_memory_is_survived(void **state)
{
    (void)state;
    dr__rl_sac *sac;
    const dr__rl_sac_settings s = dr__rl_sac_defaults();
    for (long n = 1; n < 5; n++) {
        dr__alloc_fail_at(n, false);
        const dr_status status = dr__rl_sac_new(toy_reach(), NULL, &s, &sac, &err);
        const bool is_done = dr__alloc_fail_at(0, false) < n;
        dr__rl_sac_free(&sac);
        assert_int_equal(status, is_done ? DR_OK : DR_ERR_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_reaches_its_target),
        cmocka_unit_test(a_seed_gives_the_same_policy),
        cmocka_unit_test(what_it_cannot_do_is_refused),
        cmocka_unit_test(short_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
