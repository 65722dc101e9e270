/* ppo_internal.h: the trainer's memory, for ppo.c and ppo_update.c. */
#ifndef DR_RL_PPO_INTERNAL_H
#define DR_RL_PPO_INTERNAL_H

#include "rl/adam.h"
#include "rl/ppo.h"
#include "rl/rollout.h"

enum { DR__RL_PARTS = 16 };

/* What one thread needs for its rows of a minibatch. */
typedef struct dr__rl_ppo_part {
    dr__rl_tape actor, critic;
    float *obs, *d_out, *d_value, *grads;
    uint8_t *masks, *present;
    double policy_loss, value_loss, entropy, kl, clipped; /* sums over its rows */
} dr__rl_ppo_part;

struct dr__rl_ppo {
    dr__rl_ppo_settings set;
    dr__rl_policy *policy;
    dr__rl_team *team;
    dr__rl_rollout rollout;
    dr__rl_adam adam;
    dr_rng rng; /* of the order of rows */
    uint64_t steps;
    int n_rows;                                    /* of a rollout */
    int minibatch, part_rows;                      /* rows of a minibatch and of a part of it */
    float *advantages, *returns, *scaled, *room;   /* scaled: advantages of a minibatch, normalised */
    uint32_t *order;
    dr__rl_ppo_part parts[DR__RL_PARTS];
    dr__rl_arena arena;

    const uint32_t *rows; /* of the minibatch that is worked on */
    int n_minibatch;
    double clip, entropy;
};

/* Epochs of minibatches over the rollout, at this rate; fills the losses of the progress. */
void dr__rl_ppo_update(dr__rl_ppo *ppo, double rate, dr__rl_ppo_progress *out);

#endif
