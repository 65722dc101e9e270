/* rl_policy.h: a policy: what it sees and does, its network, and how its observations are normalised.
 *
 * Holds an actor and, while it is trained, a critic.  A policy is used by one thread at a time; training reads its
 * parameters from several threads, which then do not change.
 */
#ifndef DR_RL_RL_POLICY_H
#define DR_RL_RL_POLICY_H

#include "rl/head.h"
#include "rl/rl_spec.h"

typedef struct dr__rl_shape {
    int hidden[DR__RL_LAYERS - 1]; /* widths, 1 to DR__RL_HIDDEN */
    int n_hidden;                  /* at least 1 */
    dr__rl_activation activation;
    bool has_critic;
} dr__rl_shape;

typedef struct dr__rl_policy {
    dr__rl_spec spec;
    dr__rl_heads heads;
    dr__rl_shape shape;
    dr__rl_net actor, critic;
    size_t n_params;  /* of both */
    float *params;    /* the actor's, then the critic's */
    float *mean;      /* of each number of an observation, and by what it is multiplied then; 0 and 1 where */
    float *scale;     /* observations are taken as they are */
    char *facts;      /* how it was trained and how well it does: a JSON object as text, or NULL; owned */
    dr__rl_tape tape; /* of one row */
    float *row;       /* a normalised observation */
    uint8_t *present;
    dr__rl_arena arena;
} dr__rl_policy;

/* All parameters are 0.  DR_ERR_ARG: spec or shape is not valid. */
dr_status dr__rl_policy_new(const dr__rl_spec *spec, const dr__rl_shape *shape, dr__rl_policy **out, dr_error *err);
void dr__rl_policy_free(dr__rl_policy **policy); /* NULL is fine */

/* Orthogonal weights: gain sqrt 2, 0.01 for the actions and 1 for the value. */
void dr__rl_policy_init(dr__rl_policy *policy, uint64_t seed);

/* Adds `by` to the logit of an option of categorical k, in all states: so a new policy can begin with "keep".  All ops
 * share what is added to the choices of one. */
void dr__rl_policy_lean(dr__rl_policy *policy, int k, int option, float by);

/* DR_ERR_ARG when `facts` is not a JSON object. */
dr_status dr__rl_policy_set_facts(dr__rl_policy *policy, const char *facts, dr_error *err);

/* An action for one observation, as an environment gets it; no memory is allocated.  rng NULL: the best action, else
 * one that is drawn.  Returns the logarithm of its probability. */
double dr__rl_policy_act(dr__rl_policy *policy, const float *obs, const uint8_t *mask, dr_rng *rng, float *action);

/* The critic's parameters. */
static inline float *dr__rl_policy_critic(const dr__rl_policy *policy)
{
    return policy->params + policy->actor.n_params;
}

#endif
