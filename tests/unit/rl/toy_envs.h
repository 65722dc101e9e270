/* toy_envs.h: small environments whose best policy is known. */
#ifndef DR_TESTS_RL_TOY_ENVS_H
#define DR_TESTS_RL_TOY_ENVS_H

#include "rl/rl_env.h"

/* A point on a line goes to a target by at most 0.25 a step, for 16 steps; reward: minus the distance.  One continuous
 * action.  toy_reach_best: the return of the best policy from a seed. */
const dr__rl_env_def *toy_reach(void);
double toy_reach_best(uint64_t seed);

/* Three locks with 3, 4 and 2 options; the observation shows the right ones; at each step one wrong option is forbidden,
 * which may not be taken.  Reward: the share that is right, so 1 a step at best; 8 steps, then an end.  toy_locks_broken:
 * how often a forbidden option was taken, in all environments. */
const dr__rl_env_def *toy_locks(void);
long toy_locks_broken(void);

/* Ops with a local and a remote cost; each stays or moves; reward: minus the cost of what was chosen.  Of ops 0, 1 and 2 only
 * op 2 is cheaper when it moves; op 3 is absent.  6 steps, 0 a step at best.  arg: an int, by how many places the ops are
 * turned (NULL: 0). */
const dr__rl_env_def *toy_ops(void);

/* Option 1 earns 0.1 more than option 0, beside a large random sum that depends on the seed and the step alone; 32 steps, cut
 * off. */
const dr__rl_env_def *toy_noise(void);

/* Whether a step ends by a limit of time that the agent cannot see, each with reward 1: the value of all states is
 * 1 / (1 - discount), if the limit is not taken for an end. */
const dr__rl_env_def *toy_endless(void);

/* A choice and a continuous action at a time: reward 1 for choosing what the observation's sign says, minus the distance of
 * the continuous action from half of it; 4 steps, then an end. */
const dr__rl_env_def *toy_joint(void);

#endif
