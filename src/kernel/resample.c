/* resample.c: the two passes of PIL's resampling of 8-bit pixels, in 32-bit integers with 22 bits of fraction. */
#include "kernel/level.h"

enum { FRACTION = 22, HALF = 1 << (FRACTION - 1) };

static uint8_t clip8(int32_t sum)
{
    const int32_t v = sum >> FRACTION;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void resample_row(uint8_t *dst, const uint8_t *src, int channels, const dr__taps *t)
{
    for (int x = 0; x < t->n_out; x++) {
        const uint8_t *from = src + (ptrdiff_t)t->start[x] * channels;
        const int32_t *coef = t->coef + (ptrdiff_t)x * t->stride;
        for (int k = 0; k < channels; k++) {
            int32_t sum = HALF;
            for (int j = 0; j < t->size[x]; j++)
                sum += from[j * channels + k] * coef[j];
            dst[x * channels + k] = clip8(sum);
        }
    }
}

static void resample_h(uint8_t *const *dst, const uint8_t *const *src, int n_rows, int channels, const dr__taps *taps)
{
    for (int y = 0; y < n_rows; y++)
        resample_row(dst[y], src[y], channels, taps);
}

void dr__resample_v_c(uint8_t *dst, const uint8_t *const *rows, const dr__taps *taps, size_t y, size_t bytes)
{
    const int32_t *coef = taps->coef + y * (size_t)taps->stride;
    for (size_t i = 0; i < bytes; i++) {
        int32_t sum = HALF;
        for (int j = 0; j < taps->size[y]; j++)
            sum += rows[j][i] * coef[j];
        dst[i] = clip8(sum);
    }
}

void dr__resample_c(dr__kernels *k)
{
    k->resample_h = resample_h;
    k->resample_v = dr__resample_v_c;
}
