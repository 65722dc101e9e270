/* stage_half.c: floats rounded to 16 bits: bfloat16 and float16.
 *
 * NaNs stay NaNs and infinities infinities; a finite number that would become infinite is refused.  The relative error
 * is half a unit in the last place (2^-8, 2^-11), a little more for float64, which is rounded twice.
 */
#include <math.h>
#include <string.h>

#include "codec/array/array_stage.h"
#include "kernel/half.h"

#include "base/compiler.h"

enum { TILE = 512 };

static bool takes(dr__elem in)
{
    return in.kind == DR__ELEM_FLOAT && in.size >= 4;
}

static dr__elem makes_bf16(dr__elem in)
{
    (void)in;
    return (dr__elem){ DR__ELEM_BFLOAT, 2 };
}

static dr__elem makes_fp16(dr__elem in)
{
    (void)in;
    return (dr__elem){ DR__ELEM_FLOAT, 2 };
}

static size_t bound(size_t n, dr__elem in)
{
    (void)in;
    return n * 2;
}

/* A tile of elements as float32. */
static void load(float *x, const uint8_t *data, size_t n, dr__elem in)
{
    if (in.size == 4) {
        memcpy(x, data, n * 4);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double d;
        memcpy(&d, data + i * 8, 8);
        x[i] = (float)d;
    }
}

static void store(uint8_t *out, const float *x, size_t n, dr__elem in)
{
    if (in.size == 4) {
        memcpy(out, x, n * 4);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const double d = x[i];
        memcpy(out + i * 8, &d, 8);
    }
}

static bool is_finite_at(const uint8_t *data, dr__elem in)
{
    float f;
    double d;
    if (in.size == 8) {
        memcpy(&d, data, 8);
        return isfinite(d);
    }
    memcpy(&f, data, 4);
    return isfinite(f);
}

/* One loop for both types: `infinite` is the bit pattern of infinity. */
#define ENCODE(convert, infinite)                                                                                      \
    for (size_t at = 0; at < n; at += TILE) {                                                                          \
        const size_t m = DR_MIN(n - at, (size_t)TILE);                                                                 \
        float x[TILE];                                                                                                 \
        uint16_t half[TILE];                                                                                           \
        unsigned n_infinite = 0;                                                                                       \
        load(x, data + at * in.size, m, in);                                                                           \
        for (size_t i = 0; i < m; i++)                                                                                 \
            half[i] = convert(x[i]);                                                                                   \
        for (size_t i = 0; i < m; i++)                                                                                 \
            n_infinite += (half[i] & 0x7fffu) == (infinite);                                                           \
        for (size_t i = 0; n_infinite && i < m; i++) {                                                                 \
            if ((half[i] & 0x7fffu) == (infinite) && is_finite_at(data + (at + i) * in.size, in)) {                    \
                note->bad = at + i;                                                                                    \
                return 0;                                                                                              \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(out + at * 2, half, m * 2);                                                                             \
    }

#define DECODE(convert)                                                                                                \
    for (size_t at = 0; at < n; at += TILE) {                                                                          \
        const size_t m = DR_MIN(n - at, (size_t)TILE);                                                                 \
        float x[TILE];                                                                                                 \
        uint16_t half[TILE];                                                                                           \
        memcpy(half, data + at * 2, m * 2);                                                                            \
        for (size_t i = 0; i < m; i++)                                                                                 \
            x[i] = convert(half[i]);                                                                                   \
        store(out + at * in.size, x, m, in);                                                                           \
    }

static size_t encode_bf16(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    ENCODE(dr__f32_to_bf16, 0x7f80u)
    note->rel_error = ldexp(1 + ldexp(1, -15), -8);
    note->abs_error = ldexp(1, -133);
    return n * 2;
}

static bool decode_bf16(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    if (size != n * 2)
        return false;
    DECODE(dr__bf16_to_f32)
    return true;
}

static size_t encode_fp16(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    ENCODE(dr__f32_to_f16, 0x7c00u)
    note->rel_error = ldexp(1 + ldexp(1, -12), -11);
    note->abs_error = ldexp(1 + ldexp(1, -12), -25);
    return n * 2;
}

static bool decode_fp16(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    if (size != n * 2)
        return false;
    DECODE(dr__f16_to_f32)
    return true;
}

const dr__array_stage dr__stage_bf16 = {
    .name = "bf16",
    .summary = "float32 and float64 rounded to bfloat16",
    .error = "relative 2^-8 (0.4 %); NaN and infinity are kept",
    .reason = "bfloat16 cannot hold",
    .wire_id = DR__STAGE_BF16,
    .kind = DR__STAGE_LOSSY,
    .fixed = true,
    .ratio = 4,
    .takes = takes,
    .makes = makes_bf16,
    .bound = bound,
    .encode = encode_bf16,
    .decode = decode_bf16,
};

const dr__array_stage dr__stage_fp16 = {
    .name = "fp16",
    .summary = "float32 and float64 rounded to float16: up to 65504",
    .error = "relative 2^-11 (0.05 %), absolute 2^-25 below 2^-14; NaN and infinity are kept",
    .reason = "float16 cannot hold",
    .wire_id = DR__STAGE_FP16,
    .kind = DR__STAGE_LOSSY,
    .fixed = true,
    .ratio = 4,
    .takes = takes,
    .makes = makes_fp16,
    .bound = bound,
    .encode = encode_fp16,
    .decode = decode_fp16,
};
