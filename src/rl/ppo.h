/* ppo.h: proximal policy optimisation (Schulman et al., 2017) with the usual details.
 *
 * The gradient of a minibatch is the sum of those of a fixed number of parts, in their order.  So a seed gives the same
 * policy whatever the number of threads.
 */
#ifndef DR_RL_PPO_H
#define DR_RL_PPO_H

#include "rl/rl_env.h"
#include "rl/rl_policy.h"

typedef struct dr__rl_ppo dr__rl_ppo;

typedef struct dr__rl_ppo_settings {
    dr__rl_shape shape; /* the critic is there in any case */
    uint64_t seed;
    uint64_t total_steps; /* of all environments; rate, clip and entropy bonus change linearly over them */
    int threads;
    int n_envs, n_steps; /* of a rollout */
    int trace_group;     /* so many environments share outside events, and a baseline made of each other (gae.h); 1: none */
    int epochs, minibatches;
    int parts; /* of a minibatch: at most so many threads work on it */
    double discount, lambda;
    double rate, rate_end;
    double clip, clip_end;
    double entropy, entropy_end; /* weight of the entropy bonus */
    double value_weight;
    double value_clip; /* 0: none */
    double max_norm;   /* of the gradient; 0: any */
    double max_kl;     /* an update ends when the policy has moved so far from where it began; 0: never */
    bool normalise;    /* observations by running means and deviations; false: taken as they are */
} dr__rl_ppo_settings;

typedef struct dr__rl_ppo_progress {
    uint64_t steps;
    int episodes; /* that came to an end in this rollout; without one, the means are 0 */
    double mean_return, mean_length;
    double policy_loss, value_loss, entropy, kl, clipped; /* means over the update; clipped: share of the rows */
    double explained; /* share of the variance of the returns that the critic explains */
    double norm;      /* of the gradient, mean */
    int updates;      /* minibatches used; fewer where max_kl ended it */
    int skipped;      /* minibatches whose gradient was not finite */
} dr__rl_ppo_progress;

/* Two layers of 64, tanh; 8 environments, 256 steps, 4 epochs of 4 minibatches; discount 0.98, lambda 0.95; the rate goes
 * from 3e-4 to 0, the entropy bonus from 0.01 to 0.001; clip 0.2, norm 0.5, KL 0.02; 1 thread, 4 parts. */
dr__rl_ppo_settings dr__rl_ppo_defaults(void);

/* start: a policy to go on from (its shape counts, and its critic if it has one); NULL: a new one.  DR_ERR_ARG: a setting
 * is out of range.  DR_ERR_FORMAT: `start` is for another schema. */
dr_status dr__rl_ppo_new(const dr__rl_env_def *def, const void *arg, const dr__rl_ppo_settings *settings,
                         const dr__rl_policy *start, dr__rl_ppo **out, dr_error *err);
void dr__rl_ppo_free(dr__rl_ppo **ppo); /* NULL is fine */

/* One rollout and one update.  false: total_steps were reached before, and nothing was done. */
bool dr__rl_ppo_iterate(dr__rl_ppo *ppo, dr__rl_ppo_progress *out);

/* Borrowed until dr__rl_ppo_free; not to be used during dr__rl_ppo_iterate. */
dr__rl_policy *dr__rl_ppo_policy(dr__rl_ppo *ppo);

#endif
