/* half.h: float32 to the 16-bit floats, to nearest with halves to even, as NumPy and PyTorch convert; and back. */
#ifndef DR_KERNEL_HALF_H
#define DR_KERNEL_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t dr__float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* value / 2^shift, halves to even; 1 <= shift <= 31. */
static inline uint32_t dr__shift_round_even(uint32_t value, unsigned shift)
{
    const uint32_t below = value & ((1u << shift) - 1), half = 1u << (shift - 1);
    const uint32_t kept = value >> shift;
    return kept + (below > half || (below == half && (kept & 1)));
}

/* IEEE 754 binary16.  Too large becomes infinity; a NaN keeps its upper payload bits and stays a NaN (as NumPy). */
static inline uint16_t dr__f32_to_f16(float f)
{
    const uint32_t bits = dr__float_bits(f), magnitude = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u) {
        const uint32_t payload = magnitude >> 13 & 0x3ffu;
        return (uint16_t)(sign | 0x7c00u | (payload ? payload : 1));
    }
    if (magnitude >= 0x47800000u) /* 65536 and more; 65520 to 65536 carry into infinity below */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) /* 2^-14: normal; exponent bias 127 becomes 15 */
        return (uint16_t)(sign | dr__shift_round_even(magnitude - (112u << 23), 13));
    if (magnitude < 0x33000000u) /* below half of the least subnormal, 2^-24 */
        return (uint16_t)sign;
    const unsigned shift = 126 - (magnitude >> 23);
    return (uint16_t)(sign | dr__shift_round_even((magnitude & 0x7fffffu) | 0x800000u, shift));
}

/* bfloat16, the upper half of a float32.  Every NaN becomes 0x7fc0 (as PyTorch). */
static inline uint16_t dr__f32_to_bf16(float f)
{
    const uint32_t bits = dr__float_bits(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fc0u;
    return (uint16_t)dr__shift_round_even(bits, 16);
}

static inline float dr__float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float dr__bf16_to_f32(uint16_t h)
{
    return dr__float_of_bits((uint32_t)h << 16);
}

/* Exact; without a branch for normal numbers: the exponent is moved by a multiplication, which subnormals survive. */
static inline float dr__f16_to_f32(uint16_t h)
{
    const uint32_t sign = (h & 0x8000u) << 16, magnitude = (uint32_t)(h & 0x7fffu) << 13;
    const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0;                /* infinity and NaN */
    const float scaled = dr__float_of_bits(magnitude) * dr__float_of_bits(0x77800000u); /* 2^112 */
    return dr__float_of_bits(dr__float_bits(scaled) | special | sign);
}

#endif
