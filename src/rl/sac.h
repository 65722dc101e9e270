/* sac.h: soft actor-critic (Haarnoja et al., 2018) for policies whose actions are all continuous.
 *
 * Two critics, of which the smaller value counts; slow copies of them for the targets; a weight of the entropy that adapts
 * itself.  One thread; a seed gives the same policy.
 */
#ifndef DR_RL_SAC_H
#define DR_RL_SAC_H

#include "rl/rl_env.h"
#include "rl/rl_policy.h"

typedef struct dr__rl_sac dr__rl_sac;

typedef struct dr__rl_sac_settings {
    dr__rl_shape shape; /* of the actor and of both critics; the policy keeps the actor alone */
    uint64_t seed;
    int capacity; /* steps that are remembered */
    int warm_up;  /* steps with random actions, before anything is learnt */
    int batch;
    double rate, discount;
    double follow;  /* of the slow copies, each update */
    double entropy; /* that is aimed at, per continuous action; -1 as a rule */
} dr__rl_sac_settings;

typedef struct dr__rl_sac_progress {
    uint64_t steps;
    int episodes; /* that came to an end during these steps; without one, the mean is 0 */
    double mean_return;
    double q_loss, entropy_weight, logp;
} dr__rl_sac_progress;

/* Two layers of 64, ReLU; 100000 steps remembered, 500 to warm up, batches of 128, rate 1e-3, discount 0.98, follow 0.005. */
dr__rl_sac_settings dr__rl_sac_defaults(void);

/* DR_ERR_ARG: a setting is out of range, or the environment has actions that are not continuous. */
dr_status dr__rl_sac_new(const dr__rl_env_def *def, const void *arg, const dr__rl_sac_settings *settings,
                         dr__rl_sac **out, dr_error *err);
void dr__rl_sac_free(dr__rl_sac **sac); /* NULL is fine */

/* n steps of the environment, each with an update. */
void dr__rl_sac_run(dr__rl_sac *sac, int n, dr__rl_sac_progress *out);

/* Borrowed until dr__rl_sac_free. */
dr__rl_policy *dr__rl_sac_policy(dr__rl_sac *sac);

#endif
