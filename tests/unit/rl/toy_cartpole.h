/* toy_cartpole.h: CartPole with the equations of Barto, Sutton and Anderson (1983), as Gymnasium's CartPole-v1 has them. */
#ifndef DR_TESTS_RL_TOY_CARTPOLE_H
#define DR_TESTS_RL_TOY_CARTPOLE_H

#include "rl/rl_env.h"

/* x, x', angle, angle'. */
typedef struct toy_cartpole_state {
    double x, x_dot, theta, theta_dot;
} toy_cartpole_state;

/* 20 ms with the force to the right (1) or to the left (0); true when the pole or the cart is out of bounds. */
bool toy_cartpole_move(toy_cartpole_state *state, int right);

/* Reward 1 a step, cut off after 500. */
const dr__rl_env_def *toy_cartpole(void);

#endif
