/* adam.c: a step over flat arrays, with the corrections of bias in two factors. */
#include "rl/adam.h"

#include <math.h>

static double power_of(double base, uint64_t n)
{
    double y = 1;
    for (; n; n >>= 1, base *= base)
        if (n & 1)
            y *= base;
    return y;
}

void dr__rl_adam_step(dr__rl_adam *adam, float *restrict params, const float *restrict grads, double rate)
{
    adam->steps++;
    const double beta1 = 0.9, beta2 = 0.999;
    const float step = (float)(rate / (1 - power_of(beta1, adam->steps)));
    const float unbias = (float)(1 / sqrt(1 - power_of(beta2, adam->steps)));
    float *restrict first = adam->first, *restrict second = adam->second;
    for (size_t i = 0; i < adam->n; i++) {
        first[i] = 0.9f * first[i] + 0.1f * grads[i];
        second[i] = 0.999f * second[i] + 0.001f * grads[i] * grads[i];
        params[i] -= step * first[i] / (sqrtf(second[i]) * unbias + 1e-5f);
    }
}

double dr__rl_clip_norm(float *grads, size_t n, double most)
{
    double lane[8] = { 0 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            lane[j] += (double)grads[i + (size_t)j] * grads[i + (size_t)j];
    for (; i < n; i++)
        lane[0] += (double)grads[i] * grads[i];
    double sum = 0;
    for (int j = 0; j < 8; j++)
        sum += lane[j];
    const double norm = sqrt(sum);
    if (most > 0 && norm > most) {
        const float scale = (float)(most / norm);
        for (i = 0; i < n; i++)
            grads[i] *= scale;
    }
    return norm;
}
