/* rl_spec.h: what a policy sees and does: the schema of its observations and actions.
 *
 * An observation is a row of floats: the inputs of the whole, then those of each op (op_net.h).
 * An action is a row of floats: the choice of each categorical (its number), first those of the whole, then those of op 0,
 * of op 1 ...; then the continuous ones, each between -1 and 1.
 * A mask has a byte for each option of each categorical, in the same order: 0 forbids it.  A categorical without an allowed
 * option chooses nothing (action 0, probability 1).  An op is present where any of its options is allowed.
 */
#ifndef DR_RL_RL_SPEC_H
#define DR_RL_RL_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rl/op_net.h"

enum {
    DR__RL_NAME = 32, /* with its 0 */
    DR__RL_INPUTS = 256,
    DR__RL_OP_INPUTS = 32,
    DR__RL_CHOICES = 16,    /* categoricals of the whole */
    DR__RL_OP_CHOICES = 4,  /* categoricals of each op */
    DR__RL_OPTIONS = 32,    /* of a categorical */
    DR__RL_CONTINUOUS = 16, /* continuous actions */
    DR__RL_OPS = 16,
    DR__RL_HIDDEN = 256, /* widest hidden layer */
    DR__RL_CATEGORICALS = DR__RL_CHOICES + DR__RL_OPS * DR__RL_OP_CHOICES,
    DR__RL_MASK = DR__RL_CATEGORICALS * DR__RL_OPTIONS,
    DR__RL_ACTION = DR__RL_CATEGORICALS + DR__RL_CONTINUOUS,
    DR__RL_OUTPUTS = DR__RL_MASK + 2 * DR__RL_CONTINUOUS,
    DR__RL_OBS = DR__RL_INPUTS + DR__RL_OPS * DR__RL_OP_INPUTS,
};

typedef struct dr__rl_choice {
    char name[DR__RL_NAME];
    int n; /* options, at least 2 */
} dr__rl_choice;

typedef struct dr__rl_spec {
    char name[DR__RL_NAME]; /* of the schema */
    int version;            /* of its meaning, at least 1 */
    int n_inputs, n_choices, n_continuous;
    int n_ops, n_op_inputs, n_op_choices; /* 0: nothing per op */
    char inputs[DR__RL_INPUTS][DR__RL_NAME];
    dr__rl_choice choices[DR__RL_CHOICES];
    char continuous[DR__RL_CONTINUOUS][DR__RL_NAME];
    char op_inputs[DR__RL_OP_INPUTS][DR__RL_NAME];
    dr__rl_choice op_choices[DR__RL_OP_CHOICES];
} dr__rl_spec;

/* Where the parts of outputs, masks and actions are. */
typedef struct dr__rl_heads {
    int n_obs, n_out, n_mask, n_action; /* lengths of rows */
    int n_categoricals, n_continuous;
    int mean_at, std_at, action_at; /* of the continuous actions: in the outputs, and in the action */
    int n_ops, op_mask_at, op_mask; /* where the mask of op 0 begins, and its length */
    struct {
        int out, mask, n;
    } cat[DR__RL_CATEGORICALS];
} dr__rl_heads;

/* DR_ERR_ARG, and a text that names what is wrong. */
dr_status dr__rl_spec_check(const dr__rl_spec *spec, dr_error *err);

/* DR_ERR_FORMAT when a policy made for `have` cannot be used where `want` is needed; the text names the first difference
 * and begins with `what`. */
dr_status dr__rl_spec_same(const dr__rl_spec *have, const dr__rl_spec *want, const char *what, dr_error *err);

void dr__rl_heads_of(const dr__rl_spec *spec, dr__rl_heads *out);

/* The network that has these heads as outputs, and one that has a single output. */
dr__rl_net dr__rl_actor_shape(const dr__rl_spec *spec, const int *hidden, int n_hidden, dr__rl_activation activation);
dr__rl_net dr__rl_critic_shape(const dr__rl_spec *spec, const int *hidden, int n_hidden, dr__rl_activation activation);

/* The ops that a mask shows present: [rows][n_ops]. */
void dr__rl_present(const dr__rl_heads *heads, const uint8_t *mask, int rows, uint8_t *present);

#endif
