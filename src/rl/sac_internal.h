/* sac_internal.h: the trainer's memory, for sac.c and sac_update.c. */
#ifndef DR_RL_SAC_INTERNAL_H
#define DR_RL_SAC_INTERNAL_H

#include "rl/adam.h"
#include "rl/q_net.h"
#include "rl/sac.h"

/* A critic, its slow copy, and what its gradient needs. */
typedef struct dr__rl_sac_critic {
    float *params, *slow, *grads, *acts;
    dr__rl_adam adam;
} dr__rl_sac_critic;

struct dr__rl_sac {
    dr__rl_sac_settings set;
    const dr__rl_env_def *def;
    void *env;
    dr__rl_policy *policy;
    dr__rl_mlp q;
    dr_rng rng;

    /* What happened: a ring. */
    int n, next;
    float *obs, *next_obs, *actions, *rewards;
    uint8_t *terminated;

    float now[DR__RL_OBS];
    uint64_t steps, episode;
    double gained;

    /* One batch. */
    uint32_t *rows;
    float *batch_obs, *inputs, *d_inputs, *targets, *values[2], *d_value, *action, *noise, *logps, *d_out, *scratch;
    float *actor_grads;
    dr__rl_tape tape;
    dr__rl_adam actor_adam, weight_adam;
    float log_weight, weight_moments[2]; /* of the entropy */
    dr__rl_sac_critic critics[2];
    dr__rl_arena arena;
};

/* One update of critics, actor and weight on a batch. */
void dr__rl_sac_update(dr__rl_sac *sac, dr__rl_sac_progress *out);

#endif
