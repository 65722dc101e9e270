/* mlp.h: a multi-layer perceptron of floats: outputs, and the exact gradient of a function of them.
 *
 * The shape is a small value; parameters, activations and gradients are flat arrays of the caller, so that one block can
 * hold many networks and nothing is allocated per step.  A layer's weights are [inputs][outputs], followed by its biases.
 * Results of a row do not depend on the other rows of a call.
 */
#ifndef DR_RL_MLP_H
#define DR_RL_MLP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rng.h"

enum { DR__RL_LAYERS = 4 }; /* most layers of weights */

typedef enum dr__rl_activation { DR__RL_TANH, DR__RL_RELU } dr__rl_activation;

typedef struct dr__rl_mlp {
    int n_layers;
    int sizes[DR__RL_LAYERS + 1]; /* inputs, hidden ..., outputs */
    dr__rl_activation activation;
    bool active_output; /* the last layer has the activation, too */
    int widest;         /* the largest of the sizes */
    size_t n_params;
} dr__rl_mlp;

/* n_hidden (0 to DR__RL_LAYERS - 1) hidden layers between inputs and outputs; all sizes are at least 1. */
dr__rl_mlp dr__rl_mlp_shape(int n_in, const int *hidden, int n_hidden, int n_out, dr__rl_activation activation);

/* Orthogonal weights, biases 0.  gain: of the hidden layers (sqrt 2 as a rule) and of the last one. */
void dr__rl_mlp_init(const dr__rl_mlp *mlp, float *params, double gain, double last_gain, dr_rng *rng);

/* Floats of activations for so many rows, and of scratch for the gradient. */
size_t dr__rl_mlp_acts(const dr__rl_mlp *mlp, int rows);
size_t dr__rl_mlp_scratch(const dr__rl_mlp *mlp, int rows);

/* Outputs [rows][n_out] of x [rows][n_in]; they are the last part of `acts`. */
float *dr__rl_mlp_forward(const dr__rl_mlp *mlp, const float *params, const float *x, int rows, float *acts);

/* Adds to `grads` (n_params; NULL: not wanted) the gradient for d_out, that by the outputs of a forward call on x, and sets
 * d_x [rows][n_in] (NULL: not wanted). */
void dr__rl_mlp_backward(const dr__rl_mlp *mlp, const float *params, const float *x, int rows, const float *acts,
                         const float *d_out, float *grads, float *d_x, float *scratch);

#endif
