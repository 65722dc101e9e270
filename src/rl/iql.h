/* iql.h: a policy out of recorded steps: implicit Q-learning (Kostrikov et al., 2022).
 *
 * Never asks for the value of an action that was not recorded, and weighs recorded actions by their advantage (as AWR,
 * advantage-weighted regression, does).  Two options: a pull to a policy that is known to be sound, as one trained in a
 * simulator; and the conservative term of CQL (Kumar et al., 2020), which lowers the values of other actions.
 * One thread; a seed gives the same policy.
 */
#ifndef DR_RL_IQL_H
#define DR_RL_IQL_H

#include "rl/offline_data.h"

typedef struct dr__rl_iql dr__rl_iql;

typedef struct dr__rl_iql_settings {
    dr__rl_shape shape; /* without a policy to start from; the critic, here the value of a state, is there in any case */
    uint64_t seed;
    int batch;
    double rate, discount;
    double expectile;  /* of the values of recorded actions that counts as the value of a state: 0.5 their mean, 1 the best */
    double sharpness;  /* how much an advantage weighs: 0 is imitation */
    double follow;     /* of the slow copies, each update */
    double pull;       /* weight of the distance from the policy started from; 0: none */
    double cql_weight; /* of the conservative term; 0: none */
    bool normalise;    /* observations by the data's means and deviations, without a policy to start from */
} dr__rl_iql_settings;

typedef struct dr__rl_iql_progress {
    uint64_t updates;
    double value_loss, q_loss, policy_loss, pulled; /* means over the last run; pulled: distance from the start */
} dr__rl_iql_progress;

/* Two layers of 64, tanh; batches of 128, rate 1e-3, discount 0.98, expectile 0.7, sharpness 3, follow 0.005; without CQL. */
dr__rl_iql_settings dr__rl_iql_defaults(void);

/* The data must stay.  start: NULL, or a policy for the same schema to begin with and to be pulled to.  DR_ERR_ARG: a
 * setting is out of range, or a row is not valid; DR_ERR_FORMAT: `start` is for another schema. */
dr_status dr__rl_iql_new(const dr__rl_spec *spec, const dr__rl_data *data, const dr__rl_iql_settings *settings,
                         const dr__rl_policy *start, dr__rl_iql **out, dr_error *err);
void dr__rl_iql_free(dr__rl_iql **iql); /* NULL is fine */

/* n updates. */
void dr__rl_iql_run(dr__rl_iql *iql, int n, dr__rl_iql_progress *out);

/* Borrowed until dr__rl_iql_free. */
dr__rl_policy *dr__rl_iql_policy(dr__rl_iql *iql);

#endif
