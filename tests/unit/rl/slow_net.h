/* slow_net.h: the networks of src/rl again, in double, written for being read: what the fast ones are compared with. */
#ifndef DR_TESTS_RL_SLOW_NET_H
#define DR_TESTS_RL_SLOW_NET_H

#include "rl/op_net.h"

enum { SLOW_WIDEST = 512 };

/* One row through a perceptron. */
void slow_mlp(const dr__rl_mlp *mlp, const double *params, const double *x, double *out);

/* One row through a network over ops; outputs of absent ops are 0. */
void slow_net(const dr__rl_net *net, const double *params, const double *obs, const uint8_t *present, double *out);

/* Compares a gradient with differences of a function, by params[0 .. n - 1], to 1e-4 relatively (of the number itself, or of
 * a hundredth of the largest one).  Returns how many differ. */
int slow_differences(double (*function)(void *owner), void *owner, double *params, size_t n, const float *grads);

#endif
