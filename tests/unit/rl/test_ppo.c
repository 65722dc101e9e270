/* PPO on toys whose best policy is known. */
#include "rl/ppo.h"

#include "unit/cm.h"

#include "base/clock.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(cartpole_is_solved) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
