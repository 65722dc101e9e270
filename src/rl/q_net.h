/* q_net.h: values of actions: a perceptron over an observation and an action, beside each other.
 *
 * An action's choices are given as a one for the option taken and zeros for the others of a categorical, its continuous part
 * as it is, squashed.  Absent ops have chosen nothing: zeros.
 */
#ifndef DR_RL_Q_NET_H
#define DR_RL_Q_NET_H

#include "rl/rl_spec.h"

/* Numbers of a row of inputs. */
int dr__rl_q_inputs(const dr__rl_heads *heads);

dr__rl_mlp dr__rl_q_shape(const dr__rl_heads *heads, const int *hidden, int n_hidden, dr__rl_activation activation);

/* obs: normalised; action: squashed. */
void dr__rl_q_input(const dr__rl_heads *heads, const float *obs, const uint8_t *mask, const float *action, float *to);

/* to += rate * (from - to), for slow copies of networks. */
void dr__rl_follow(float *to, const float *from, size_t n, double rate);

#endif
