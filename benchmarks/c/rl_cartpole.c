/* rl_cartpole: trains PPO of src/rl on CartPole and plays 100 episodes; `drapps experiment rl` runs it beside another
 * library with the same settings.
 *
 *   rl_cartpole train STEPS SEED THREADS    prints {"seconds": ..., "steps": ..., "mean_return": ...}
 *   rl_cartpole moves N                     prints N states after fixed rules, to compare the equations
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rl/ppo.h"
#include "rl/rollout.h"
#include "unit/rl/toy_cartpole.h"

enum { EPISODES = 100 };

static int moves(int n)
{
    toy_cartpole_state s = { 0.01, -0.02, 0.03, 0.04 };
    for (int i = 0; i < n; i++) {
        toy_cartpole_move(&s, s.theta + s.theta_dot > 0);
        printf("%.17g %.17g %.17g %.17g\n", s.x, s.x_dot, s.theta, s.theta_dot);
    }
    return 0;
}

/* Settings that are known to suit CartPole; benchmarks/experiments/rl/sb3_child.py has the same. */
static dr__rl_ppo_settings settings(uint64_t steps, uint64_t seed, int threads)
{
    dr__rl_ppo_settings s = dr__rl_ppo_defaults();
    s.total_steps = steps;
    s.seed = seed;
    s.threads = threads;
    s.n_envs = 8;
    s.n_steps = 32;
    s.minibatches = 1;
    s.epochs = 20;
    s.discount = 0.98;
    s.lambda = 0.8;
    s.rate = 1e-3;
    s.clip_end = 0;
    s.entropy = s.entropy_end = 0;
    s.max_kl = 0;
    return s;
}

static dr_status train(uint64_t steps, uint64_t seed, int threads, dr_error *err)
{
    const dr__rl_ppo_settings s = settings(steps, seed, threads);
    dr__rl_ppo_progress progress = { 0 };
    dr__rl_ppo *ppo;
    double mean;
    DR_TRY(dr__rl_ppo_new(toy_cartpole(), NULL, &s, NULL, &ppo, err));
    const uint64_t start = dr__now_ns();
    while (dr__rl_ppo_iterate(ppo, &progress))
        steps = progress.steps;
    const double seconds = (double)(dr__now_ns() - start) * 1e-9;
    const dr_status status =
        dr__rl_evaluate(toy_cartpole(), NULL, dr__rl_ppo_policy(ppo), EPISODES, 1000000, false, NULL, &mean, err);
    if (status == DR_OK)
        printf("{\"seconds\": %.6f, \"steps\": %llu, \"mean_return\": %.3f}\n", seconds, (unsigned long long)steps, mean);
    dr__rl_ppo_free(&ppo);
    return status;
}

int main(int argc, char **argv)
{
    dr_error err = { 0 };
    if (argc == 3 && !strcmp(argv[1], "moves"))
        return moves(atoi(argv[2]));
    if (argc != 5 || strcmp(argv[1], "train") != 0) {
        fprintf(stderr, "usage: rl_cartpole train STEPS SEED THREADS | moves N\n");
        return 2;
    }
    if (train(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), atoi(argv[4]), &err) == DR_OK)
        return 0;
    fprintf(stderr, "rl_cartpole: %s\n", err.text);
    return 1;
}
