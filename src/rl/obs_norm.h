/* obs_norm.h: running means and variances of observations, for inputs that are not dimensionless by themselves.
 *
 * Moments of parts are merged in a fixed order, so that the result does not depend on who counted which part.
 */
#ifndef DR_RL_OBS_NORM_H
#define DR_RL_OBS_NORM_H

#include <stddef.h>

/* Of n numbers: how often they were seen, means and sums of squared differences from them.  Borrows its arrays. */
typedef struct dr__rl_moments {
    int n;
    double count;
    double *mean, *squares;
} dr__rl_moments;

void dr__rl_moments_add(dr__rl_moments *moments, const float *row);

/* Adds `part`, and empties it. */
void dr__rl_moments_merge(dr__rl_moments *moments, dr__rl_moments *part);

/* What rows are normalised by: (x - mean) * scale. */
void dr__rl_moments_scale(const dr__rl_moments *moments, float *mean, float *scale);

/* A row normalised and held between -10 and 10; what is not a number becomes 0.  `to` may be `row`. */
void dr__rl_normalise(const float *mean, const float *scale, int n, const float *row, float *to);

#endif
