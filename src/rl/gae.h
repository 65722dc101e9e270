/* gae.h: advantages of actions: GAE (Schulman et al., 2016), with ends that are not final, and a baseline that knows the
 * outside events of an episode.
 *
 * Arrays are [steps][envs].  values[t] is the value of what was seen before step t, next_values[t] that of what was seen
 * after it: 0 where the episode came to its end, and the critic's value where it was merely cut off by a limit of time.
 */
#ifndef DR_RL_GAE_H
#define DR_RL_GAE_H

#include <stdint.h>

typedef struct dr__rl_gae_steps {
    int n_steps, n_envs;
    const float *rewards, *values, *next_values;
    const uint8_t *ended; /* the next row of this environment belongs to another episode */
} dr__rl_gae_steps;

/* Sets advantages, and returns (advantages + values): targets of the critic. */
void dr__rl_gae(const dr__rl_gae_steps *steps, double discount, double lambda, float *advantages, float *returns);

/* Takes from each advantage the mean of its peers': of environments of the same group (`group` neighbours) that are at the
 * same step of the same episode, whose outside events (reset's seed) are the same.  What these events did to the return is
 * taken out without bias, as the peers' actions do not depend on the own one (Mao et al., 2019).  places[t] says where an
 * environment is: episode in the upper 32 bits, step in the lower ones.  room: floats for n_envs. */
void dr__rl_peer_baseline(int n_steps, int n_envs, int group, const uint64_t *places, float *advantages, float *room);

#endif
