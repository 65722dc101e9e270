/* iql_internal.h: the trainer's memory, for iql.c and iql_update.c. */
#ifndef DR_RL_IQL_INTERNAL_H
#define DR_RL_IQL_INTERNAL_H

#include "rl/adam.h"
#include "rl/head.h"
#include "rl/iql.h"
#include "rl/q_net.h"

enum { DR__RL_CQL_OTHERS = 8 }; /* other actions of a state that the conservative term looks at */

/* Values of actions, and their slow copy. */
typedef struct dr__rl_iql_q {
    float *params, *slow, *grads, *acts, *values;
    dr__rl_adam adam;
} dr__rl_iql_q;

struct dr__rl_iql {
    dr__rl_iql_settings set;
    dr__rl_data data;
    dr__rl_policy *policy, *start; /* start: a copy, or NULL */
    dr__rl_mlp q;
    dr_rng rng;
    uint64_t updates;

    uint32_t *rows;
    float *obs, *next_obs, *actions, *inputs, *others; /* actions: squashed; others: inputs of the conservative term */
    uint8_t *masks, *next_masks, *present;
    float *next_values, *targets, *advantages, *d_value, *d_others, *d_out, *grads, *scratch, *other_acts;
    dr__rl_tape actor, critic, start_tape;
    dr__rl_adam adam; /* of actor and critic */
    dr__rl_iql_q qs[2];
    dr__rl_arena arena;
};

void dr__rl_iql_update(dr__rl_iql *iql, dr__rl_iql_progress *out);

#endif
