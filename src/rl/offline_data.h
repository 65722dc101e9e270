/* offline_data.h: steps that were recorded while some policy acted. */
#ifndef DR_RL_OFFLINE_DATA_H
#define DR_RL_OFFLINE_DATA_H

#include "rl/rl_policy.h"

/* n rows, borrowed: what was seen, what was done (as an environment gets it), and what came of it. */
typedef struct dr__rl_data {
    int n;
    const float *obs, *next_obs, *actions, *rewards;
    const uint8_t *masks, *next_masks, *terminated; /* terminated: nothing followed; a limit of time is none */
} dr__rl_data;

/* DR_ERR_ARG: no row, or one with a number that is not finite, a choice that is none or forbidden, or a continuous action
 * beyond -1 and 1; the text has its number. */
dr_status dr__rl_data_check(const dr__rl_data *data, const dr__rl_heads *heads, dr_error *err);

#endif
