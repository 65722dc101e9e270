/* PPO on toys whose best policy is known. */
#include "rl/ppo.h"

#include "unit/cm.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "rl/gae.h"
#include "rl/rollout.h"
#include "unit/rl/toy_cartpole.h"
#include "unit/rl/toy_envs.h"

static dr_error err;

/* Trains to the end; the policy belongs to *ppo. */
static dr__rl_policy *trained(const dr__rl_env_def *def, const void *arg, const dr__rl_ppo_settings *s, dr__rl_ppo **ppo,
                              dr__rl_ppo_progress *last)
{
    dr__rl_ppo_progress now;
    assert_ok(dr__rl_ppo_new(def, arg, s, NULL, ppo, &err));
    while (dr__rl_ppo_iterate(*ppo, &now))
        *last = now;
    return dr__rl_ppo_policy(*ppo);
}

static double mean_return(const dr__rl_env_def *def, const void *arg, dr__rl_policy *policy, int n)
{
    double mean;
    assert_ok(dr__rl_evaluate(def, arg, policy, n, 1000000, false, NULL, &mean, &err));
    return mean;
}

static void cartpole_is_solved(void **state)
{
    (void)state;
    dr__rl_ppo *ppo;
    dr__rl_ppo_progress last;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.total_steps = 100000;
    s.n_steps = 32;
    s.epochs = 20;
    s.minibatches = 1;
    s.lambda = 0.8;
    s.rate = 1e-3;
    s.clip_end = 0;
    s.entropy = s.entropy_end = 0;
    s.max_kl = 0;
    s.seed = 1;
    const uint64_t start = dr__thread_cpu_ns();
    dr__rl_policy *p = trained(toy_cartpole(), NULL, &s, &ppo, &last);
    const double seconds = (double)(dr__thread_cpu_ns() - start) * 1e-9, mean = mean_return(toy_cartpole(), NULL, p, 100);
    print_message("CartPole: mean return %.1f over 100 episodes after %.2f s of CPU time\n", mean, seconds);
    assert_true(mean >= 475);
    dr__rl_ppo_free(&ppo);
}

static void forbidden_options_are_not_taken_and_right_ones_are(void **state)
{
    (void)state;
    dr__rl_ppo *ppo;
    dr__rl_ppo_progress last;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.total_steps = 80000;
    s.rate = 2e-3;
    s.normalise = true;
    s.threads = 2;
    dr__rl_policy *p = trained(toy_locks(), NULL, &s, &ppo, &last);
    assert_true(mean_return(toy_locks(), NULL, p, 200) > 7.9); /* 8 at best */
    assert_int_equal(toy_locks_broken(), 0);
    assert_true(last.entropy < 0.5); /* of log 24 at first */
    dr__rl_ppo_free(&ppo);
}

static void a_point_reaches_its_target(void **state)
{
    (void)state;
    dr__rl_ppo *ppo;
    dr__rl_ppo_progress last;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.total_steps = 150000;
    s.rate = 2e-3;
    s.entropy = s.entropy_end = 0;
    dr__rl_policy *p = trained(toy_reach(), NULL, &s, &ppo, &last);
    double best = 0;
    for (int i = 0; i < 200; i++)
        best += toy_reach_best(1000000 + (uint64_t)i) / 200;
    assert_true(mean_return(toy_reach(), NULL, p, 200) > best - 0.4);
    assert_true(last.explained > 0.1);
    dr__rl_ppo_free(&ppo);
}

static void choices_and_numbers_are_learnt_together(void **state)
{
    (void)state;
    dr__rl_ppo *ppo;
    dr__rl_ppo_progress last;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.total_steps = 100000;
    s.rate = 2e-3;
    s.entropy = s.entropy_end = 0;
    dr__rl_policy *p = trained(toy_joint(), NULL, &s, &ppo, &last);
    assert_true(mean_return(toy_joint(), NULL, p, 200) > 3.7); /* 4 at best */
    dr__rl_ppo_free(&ppo);
}

/* The encoder is shared, so a policy that was trained with the dear op in one place knows it in another. */
static void only_the_op_that_should_moves(void **state)
{
    (void)state;
    dr__rl_ppo *ppo;
    dr__rl_ppo_progress last;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    const int turns[] = { 0, 1, 3 };
    s.total_steps = 60000;
    s.rate = 2e-3;
    dr__rl_policy *p = trained(toy_ops(), NULL, &s, &ppo, &last);
    for (int i = 0; i < 3; i++)
        assert_true(mean_return(toy_ops(), &turns[i], p, 200) > -0.2); /* 0 at best, -18 at worst */
    const float obs[9] = { 0.5f, 0.1f, 1, 0.1f, 1, 1, 0.1f, 0, 0 };
    const uint8_t mask[8] = { 1, 1, 1, 1, 1, 1, 0, 0 };
    float action[4];
    dr__rl_policy_act(p, obs, mask, NULL, action);
    assert_true(action[0] == 0 && action[1] == 0 && action[2] == 1 && action[3] == 0);
    dr__rl_ppo_free(&ppo);
}

/* The critic's value of the only observation. */
static double value_of_endless(double discount)
{
    dr__rl_ppo *ppo;
    dr__rl_ppo_progress last;
    dr__rl_rollout roll;
    dr__rl_team *team;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.total_steps = 120000;
    s.rate = s.rate_end = 3e-3;
    s.discount = discount;
    s.max_kl = 0;
    dr__rl_policy *p = trained(toy_endless(), NULL, &s, &ppo, &last);
    const dr__rl_rollout_settings set = { .def = toy_endless(), .n_steps = 1, .n_envs = 1, .trace_group = 1 };
    assert_ok(dr__rl_team_new(1, &team, &err));
    assert_ok(dr__rl_rollout_open(&roll, &set, p, &err));
    dr__rl_rollout_run(&roll, team);
    const double value = roll.values[0];
    dr__rl_rollout_close(&roll);
    dr__rl_team_free(&team);
    dr__rl_ppo_free(&ppo);
    return value;
}

static void a_limit_of_time_is_no_end(void **state)
{
    (void)state;
    assert_true(fabs(value_of_endless(0.9) - 10) < 0.7); /* 1 + 0.9 + ... of five steps would be 4.1 at most */
}

/* Variance of the advantages of many rollouts, with and without peers. */
static double spread(int group)
{
    enum { T = 32, E = 32 };
    static float advantages[T * E], returns[T * E], room[E];
    dr__rl_policy *p;
    dr__rl_rollout r;
    dr__rl_team *team;
    double squares = 0;
    const dr__rl_shape shape = { .hidden = { 8 }, .n_hidden = 1, .has_critic = true };
    const dr__rl_rollout_settings set = { .def = toy_noise(), .n_steps = T, .n_envs = E, .trace_group = 8 };
    assert_ok(dr__rl_policy_new(toy_noise()->spec, &shape, &p, &err));
    dr__rl_policy_init(p, 1);
    assert_ok(dr__rl_team_new(2, &team, &err));
    assert_ok(dr__rl_rollout_open(&r, &set, p, &err));
    for (int k = 0; k < 20; k++) {
        dr__rl_rollout_run(&r, team);
        const dr__rl_gae_steps steps = { T, E, r.rewards, r.values, r.next_values, r.ended };
        dr__rl_gae(&steps, 0.98, 0.95, advantages, returns);
        if (group > 1)
            dr__rl_peer_baseline(T, E, group, r.places, advantages, room);
        for (int i = 0; i < T * E; i++)
            squares += (double)advantages[i] * advantages[i] / (T * E);
    }
    dr__rl_rollout_close(&r);
    dr__rl_team_free(&team);
    dr__rl_policy_free(&p);
    return squares / 20;
}

static double noise_learnt(int group)
{
    dr__rl_ppo *ppo;
    dr__rl_ppo_progress last;
    double share = 0;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.total_steps = 20000;
    s.n_envs = 16;
    s.n_steps = 64;
    s.trace_group = group;
    s.max_kl = 0;
    s.rate = s.rate_end = 3e-4;
    s.entropy = s.entropy_end = 0;
    dr__rl_policy *p = trained(toy_noise(), NULL, &s, &ppo, &last);
    const uint8_t mask[2] = { 1, 1 };
    const float obs = 1;
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = 1 }, 9);
    for (int i = 0; i < 1000; i++) {
        float action;
        dr__rl_policy_act(p, &obs, mask, &rng, &action);
        share += action / 1000;
    }
    dr__rl_ppo_free(&ppo);
    return share;
}

static void peers_take_the_noise_out(void **state)
{
    (void)state;
    assert_true(spread(8) < 0.1 * spread(1));
    assert_true(noise_learnt(8) > 0.95);
}

/* The parameters after some updates. */
static void after(int threads, uint64_t seed, float *params, size_t *n)
{
    dr__rl_ppo *ppo;
    dr__rl_ppo_progress progress;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.n_envs = 20;
    s.n_steps = 64;
    s.threads = threads;
    s.seed = seed;
    s.normalise = true;
    assert_ok(dr__rl_ppo_new(toy_cartpole(), NULL, &s, NULL, &ppo, &err));
    for (int i = 0; i < 5; i++)
        assert_true(dr__rl_ppo_iterate(ppo, &progress));
    *n = dr__rl_ppo_policy(ppo)->n_params;
    memcpy(params, dr__rl_ppo_policy(ppo)->params, *n * sizeof *params);
    dr__rl_ppo_free(&ppo);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    static float one[20000], more[20000];
    size_t n;
    after(1, 1, one, &n);
    for (int threads = 2; threads <= 5; threads++) {
        after(threads, 1, more, &n);
        assert_memory_equal(one, more, n * sizeof *one);
    }
    after(1, 2, more, &n);
    assert_memory_not_equal(one, more, n * sizeof *one);
}

static void training_goes_on_from_a_policy(void **state)
{
    (void)state;
    dr__rl_ppo *first, *second;
    dr__rl_ppo_progress last;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.total_steps = 40000;
    s.rate = 2e-3;
    dr__rl_policy *p = trained(toy_locks(), NULL, &s, &first, &last);
    const double before = mean_return(toy_locks(), NULL, p, 100);
    s.rate = 1e-5;
    assert_ok(dr__rl_ppo_new(toy_locks(), NULL, &s, p, &second, &err));
    assert_true(dr__rl_ppo_iterate(second, &last));
    assert_true(mean_return(toy_locks(), NULL, dr__rl_ppo_policy(second), 100) > before - 0.2);
    dr__rl_ppo_free(&second);
    assert_fails(dr__rl_ppo_new(toy_ops(), NULL, &s, p, &second, &err), DR_ERR_FORMAT, "schema 'ops'");
    assert_null(second);
    dr__rl_ppo_free(&first);
}

static void settings_are_checked(void **state)
{
    (void)state;
    dr__rl_ppo *ppo;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.n_envs = 0;
    assert_fails(dr__rl_ppo_new(toy_locks(), NULL, &s, NULL, &ppo, &err), DR_ERR_ARG,
                 "n_envs must be between 1 and 4096, got 0");
    s = dr__rl_ppo_defaults();
    s.discount = NAN;
    assert_fails(dr__rl_ppo_new(toy_locks(), NULL, &s, NULL, &ppo, &err), DR_ERR_ARG, "discount must be between 0 and 1");
    s = dr__rl_ppo_defaults();
    s.shape.hidden[1] = 0;
    assert_fails(dr__rl_ppo_new(toy_locks(), NULL, &s, NULL, &ppo, &err), DR_ERR_ARG, "hidden layer 1 must be");
}

static void short_memory_is_survived(void **state)
{
    (void)state;
    dr__rl_ppo *ppo;
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.threads = 2;
    for (long n = 1;; n++) {
        dr__alloc_fail_at(n, false);
        const dr_status status = dr__rl_ppo_new(toy_cartpole(), NULL, &s, NULL, &ppo, &err);
        const bool is_done = dr__alloc_fail_at(0, false) < n;
        dr__rl_ppo_free(&ppo);
        if (is_done) {
            assert_int_equal(status, DR_OK);
            assert_true(n > 8);
            return;
        }
        assert_int_equal(status, DR_ERR_NOMEM);
    }
}

static void the_equations_are_those_of_the_book(void **state)
{
    (void)state;
    toy_cartpole_state s = { 0.01, -0.02, 0.03, 0.04 };
    toy_cartpole_move(&s, 1);
    assert_true(fabs(s.x - 0.0096) < 1e-12 && fabs(s.theta - 0.0308) < 1e-12);
    assert_true(fabs(s.x_dot - 0.17467919574755525) < 1e-12 && fabs(s.theta_dot - -0.24306871796000815) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cartpole_is_solved),
        cmocka_unit_test(forbidden_options_are_not_taken_and_right_ones_are),
        cmocka_unit_test(a_point_reaches_its_target),
        cmocka_unit_test(choices_and_numbers_are_learnt_together),
        cmocka_unit_test(only_the_op_that_should_moves),
        cmocka_unit_test(a_limit_of_time_is_no_end),
        cmocka_unit_test(peers_take_the_noise_out),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(training_goes_on_from_a_policy),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(short_memory_is_survived),
        cmocka_unit_test(the_equations_are_those_of_the_book),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
