/* op_net.h: a network over numbers of a pipeline and, if there are any, over each of its ops.
 *
 * An observation is [global numbers][numbers of op 0][numbers of op 1] ..., with room for n_ops ops of which some are
 * present.  One encoder, shared by all ops, makes a code of each; the mean of the codes of those present joins the global
 * numbers as input of the trunk, which makes the n_out global outputs.  A head, shared too, makes n_op_out outputs of
 * each op from its code, the global numbers and the mean.  Without ops it is the trunk alone.
 * Outputs are [global outputs][outputs of op 0] ...; those of an absent op are not to be used.
 */
#ifndef DR_RL_OP_NET_H
#define DR_RL_OP_NET_H

#include "rl/mlp.h"
#include "rl/rl_arena.h"

typedef struct dr__rl_net {
    int n_global, n_ops, n_op_inputs, n_out, n_op_out;
    int n_obs, n_all_out; /* lengths of a row */
    dr__rl_mlp encoder, trunk, op_head;
    size_t n_params; /* of encoder, trunk and op head, in this order */
} dr__rl_net;

/* What a forward call leaves for the gradient, for up to `rows` rows. */
typedef struct dr__rl_tape {
    float *op_inputs, *codes, *trunk_in, *trunk, *head_in, *head, *out; /* codes, trunk, head: activations */
    float *d_codes, *d_trunk_in, *d_trunk, *d_head, *d_head_in, *scratch;
} dr__rl_tape;

/* hidden: of the trunk; the encoder has one layer of hidden[0], and the op head a hidden one of the same width. */
dr__rl_net dr__rl_net_shape(int n_global, int n_ops, int n_op_inputs, int n_out, int n_op_out, const int *hidden,
                            int n_hidden, dr__rl_activation activation);

/* Orthogonal; last_gain: of the outputs. */
void dr__rl_net_init(const dr__rl_net *net, float *params, double last_gain, dr_rng *rng);

void dr__rl_tape_lay_out(const dr__rl_net *net, int rows, dr__rl_arena *arena, dr__rl_tape *tape);

/* Outputs [rows][n_all_out].  present: [rows][n_ops], not looked at without ops. */
const float *dr__rl_net_forward(const dr__rl_net *net, const float *params, const float *obs, const uint8_t *present,
                                int rows, dr__rl_tape *tape);

/* Adds the gradient for d_out [rows][n_all_out] after a forward call on the same arguments. */
void dr__rl_net_backward(const dr__rl_net *net, const float *params, const float *obs, const uint8_t *present, int rows,
                         dr__rl_tape *tape, const float *d_out, float *grads);

#endif
