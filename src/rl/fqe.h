/* fqe.h: how well a policy would do, from recorded steps of another one: fitted Q evaluation (Le et al., 2019).
 *
 * Fits the value of recorded actions when the policy acts from then on.  It is an estimate: where the policy does what was
 * never recorded, nothing holds it.
 */
#ifndef DR_RL_FQE_H
#define DR_RL_FQE_H

#include "rl/offline_data.h"

typedef struct dr__rl_fqe_settings {
    int hidden[2]; /* widths of the two layers, 1 to DR__RL_HIDDEN */
    uint64_t seed;
    int batch, updates;
    double rate, discount, follow;
    bool draw; /* the policy draws its actions; false: it takes the best ones */
} dr__rl_fqe_settings;

/* Layers of 64; 10000 updates on batches of 128; rate 1e-3 to 0, discount 0.98, follow 0.01. */
dr__rl_fqe_settings dr__rl_fqe_defaults(void);

/* *value: mean discounted return of the policy from the first `n_starts` rows of starts (observations as they come, and
 * masks).  DR_ERR_ARG: a setting is out of range, or a row is not valid. */
dr_status dr__rl_fqe(dr__rl_policy *policy, const dr__rl_data *data, const dr__rl_fqe_settings *settings,
                     const float *starts, const uint8_t *start_masks, int n_starts, double *value, dr_error *err);

#endif
