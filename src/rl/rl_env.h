/* rl_env.h: an environment to learn in: a table of functions, so that learning knows nothing of what it learns. */
#ifndef DR_RL_RL_ENV_H
#define DR_RL_RL_ENV_H

#include "rl/rl_spec.h"

typedef struct dr__rl_outcome {
    float reward;
    bool terminated; /* the episode came to its end: nothing follows */
    bool truncated;  /* it was cut off, as by a limit of time: something would have followed */
} dr__rl_outcome;

typedef struct dr__rl_env_def {
    const char *name;
    const dr__rl_spec *spec;

    /* A new environment.  arg: the caller's, the same for all environments of a run. */
    dr_status (*open)(const void *arg, void **env, dr_error *err);
    void (*close)(void *env);

    /* Begins an episode, and sets its first observation and mask.  All outside events of the episode follow from the seed:
     * the same seed and the same actions give the same episode. */
    void (*reset)(void *env, uint64_t seed, float *obs, uint8_t *mask);

    /* One action, its outcome (zeros before the call) and the observation and mask after it.  Not called again after an end before `reset`.
     * Different environments are stepped by different threads at the same time. */
    void (*step)(void *env, const float *action, float *obs, uint8_t *mask, dr__rl_outcome *outcome);
} dr__rl_env_def;

#endif
