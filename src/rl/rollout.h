/* rollout.h: what a policy sees, does and gets in many environments at a time.
 *
 * Each environment has randomness of its own, and environments are stepped in fixed groups of 8 (chunks), so that what
 * happens does not depend on the number of threads.
 */
#ifndef DR_RL_ROLLOUT_H
#define DR_RL_ROLLOUT_H

#include "rl/obs_norm.h"
#include "rl/rl_env.h"
#include "rl/rl_policy.h"
#include "rl/team.h"

enum { DR__RL_CHUNK = 8 };

typedef struct dr__rl_rollout_settings {
    const dr__rl_env_def *def;
    const void *arg; /* for `open` */
    int n_steps, n_envs;
    int trace_group; /* so many neighbours see the same outside events in their episodes; 1: none share them */
    uint64_t seed;
} dr__rl_rollout_settings;

typedef struct dr__rl_lane dr__rl_lane;   /* an environment and where it is */
typedef struct dr__rl_chunk dr__rl_chunk; /* what a thread needs to step a chunk */

/* Rows are [n_steps][n_envs]. */
typedef struct dr__rl_rollout {
    dr__rl_rollout_settings set;
    const dr__rl_policy *policy; /* with a critic; borrowed */
    float *obs, *actions;        /* normalised; continuous parts unsquashed */
    float *logps, *values, *next_values, *rewards;
    uint8_t *masks, *ended;
    uint64_t *places;       /* see dr__rl_peer_baseline */
    dr__rl_moments moments; /* of all observations since the beginning, as they came */
    double episodes, return_sum, length_sum; /* of the episodes that came to an end in the last run */

    dr__rl_lane *lanes;
    dr__rl_chunk *chunks;
    dr__rl_arena arena;
} dr__rl_rollout;

/* Opens and resets the environments.  The policy must stay. */
dr_status dr__rl_rollout_open(dr__rl_rollout *rollout, const dr__rl_rollout_settings *settings,
                              const dr__rl_policy *policy, dr_error *err);
void dr__rl_rollout_close(dr__rl_rollout *rollout);

/* n_steps steps of each environment, from where it was. */
void dr__rl_rollout_run(dr__rl_rollout *rollout, dr__rl_team *team);

/* Plays n episodes, one after the other, from the seeds seed, seed + 1, ...; draws actions or takes the best ones.  Sets
 * `returns` (n of them; NULL: not wanted) and *mean. */
dr_status dr__rl_evaluate(const dr__rl_env_def *def, const void *arg, dr__rl_policy *policy, int n, uint64_t seed,
                          bool draw, double *returns, double *mean, dr_error *err);

#endif
