/* gae.c: backwards through time, all environments side by side. */
#include "rl/gae.h"

#include <stddef.h>
#include <string.h>

void dr__rl_gae(const dr__rl_gae_steps *s, double discount, double lambda, float *advantages, float *returns)
{
    const size_t n = (size_t)s->n_envs;
    const float g = (float)discount, gl = (float)(discount * lambda);
    for (int t = s->n_steps - 1; t >= 0; t--)
        for (size_t e = 0; e < n; e++) {
            const size_t i = (size_t)t * n + e;
            const float later = t + 1 < s->n_steps && !s->ended[i] ? advantages[i + n] : 0;
            const float surprise = s->rewards[i] + g * s->next_values[i] - s->values[i];
            advantages[i] = surprise + gl * later;
            returns[i] = advantages[i] + s->values[i];
        }
}

/* The mean advantage of the peers of environment e among those from `first` on; 0 without one. */
static float peers_mean(const uint64_t *places, const float *advantages, int first, int end, int e)
{
    float sum = 0;
    int n = 0;
    for (int other = first; other < end; other++)
        if (other != e && places[other] == places[e]) {
            sum += advantages[other];
            n++;
        }
    return n ? sum / (float)n : 0;
}

void dr__rl_peer_baseline(int n_steps, int n_envs, int group, const uint64_t *places, float *advantages, float *room)
{
    for (int t = 0; t < n_steps; t++) {
        const size_t at = (size_t)t * (size_t)n_envs;
        for (int e = 0; e < n_envs; e++) {
            const int first = e - e % group, end = first + group < n_envs ? first + group : n_envs;
            room[e] = advantages[at + (size_t)e] - peers_mean(places + at, advantages + at, first, end, e);
        }
        memcpy(advantages + at, room, (size_t)n_envs * sizeof *room);
    }
}
