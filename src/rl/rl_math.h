/* rl_math.h: exp and tanh of floats in loops that compilers vectorise.
 *
 * Plain float arithmetic in a fixed order, so a seed gives the same policy on every machine.  Nothing in src/rl takes part
 * in a sample's bytes, so libm would be allowed; it is slower here and rounds differently from version to version.
 */
#ifndef DR_RL_RL_MATH_H
#define DR_RL_RL_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* Within 3e-7 of exp(x), relatively; x below -87 counts as -87, above 88 as 88. */
DR_INLINE float dr__rl_exp(float x)
{
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float shifted = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: the low bits are the rounded quotient */
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float y = 1.0f / 5040;
    y = y * r + 1.0f / 720;
    y = y * r + 1.0f / 120;
    y = y * r + 1.0f / 24;
    y = y * r + 1.0f / 6;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - 0x4b400000u + 127u) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return y * power;
}

/* Within 3e-7 of tanh(x). */
DR_INLINE float dr__rl_tanh(float x)
{
    float a = fabsf(x);
    a = a > 10.0f ? 10.0f : a;
    const float e = dr__rl_exp(-2.0f * a);
    return copysignf((1.0f - e) / (1.0f + e), x);
}

#endif
