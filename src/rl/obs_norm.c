/* obs_norm.c: Welford's recurrence, and its form for two parts (Chan, Golub, LeVeque). */
#include "rl/obs_norm.h"

#include <math.h>

#include "base/compiler.h"

void dr__rl_moments_add(dr__rl_moments *m, const float *row)
{
    m->count += 1;
    for (int i = 0; i < m->n; i++) {
        const double x = isfinite(row[i]) ? row[i] : 0, apart = x - m->mean[i];
        m->mean[i] += apart / m->count;
        m->squares[i] += apart * (x - m->mean[i]);
    }
}

void dr__rl_moments_merge(dr__rl_moments *m, dr__rl_moments *part)
{
    const double count = m->count + part->count;
    for (int i = 0; i < m->n && part->count > 0; i++) {
        const double apart = part->mean[i] - m->mean[i];
        m->mean[i] += apart * part->count / count;
        m->squares[i] += part->squares[i] + apart * apart * m->count * part->count / count;
    }
    m->count = count;
    part->count = 0;
    for (int i = 0; i < part->n; i++)
        part->mean[i] = part->squares[i] = 0;
}

void dr__rl_moments_scale(const dr__rl_moments *m, float *mean, float *scale)
{
    for (int i = 0; i < m->n; i++) {
        mean[i] = (float)m->mean[i];
        scale[i] = m->count > 1 ? (float)(1 / sqrt(m->squares[i] / m->count + 1e-8)) : 1;
    }
}

void dr__rl_normalise(const float *mean, const float *scale, int n, const float *row, float *to)
{
    for (int i = 0; i < n; i++) {
        const float x = (row[i] - mean[i]) * scale[i], held = DR_MIN(DR_MAX(x, -10.0f), 10.0f);
        to[i] = x == x ? held : 0;
    }
}
