/* check_jpeg.c: the inner loops of the JPEG decoder. */
#include <string.h>

#include "checkkernel.h"

enum { MAX_BLOCKS = 40, MAX_WIDTH = 520 };

/* Coefficients as in photographs, as in flat areas, and what only a broken file holds: up to the ends of 16 bits. */
static void block_random(int16_t *coef)
{
    const size_t kind = rnd_below(6), reach = (size_t)1 << (kind < 3 ? 1 + rnd_below(11) : 16);
    const size_t n = rnd_below(2) ? 64 : 1 + rnd_below(kind == 0 ? 8 : 63);
    memset(coef, 0, 64 * sizeof(*coef));
    for (size_t i = 0; kind != 1 && i < n; i++) {
        const int value = (int)rnd_below(reach) - (int)(reach / 2);
        coef[n < 64 ? rnd_below(kind == 2 ? 8 : 64) : i] =
            (int16_t)(kind == 5 ? (value < 0 ? INT16_MIN : INT16_MAX) : value);
    }
    if (kind == 1)
        coef[0] = (int16_t)rnd();
}

static void quant_random(int16_t *quant)
{
    const size_t kind = rnd_below(4);
    for (size_t i = 0; i < 64; i++)
        quant[i] = (int16_t)(uint16_t)(kind == 0   ? 1
                                       : kind == 1 ? 1 + rnd_below(255)
                                       : kind == 2 ? 1 + rnd_below(20)
                                                   : rnd());
}

CHECK_KERNEL(idct_8x8)
{
    for (int i = 0; i < 2000; i++) {
        const size_t n = 1 + rnd_size(MAX_BLOCKS), stride = n * 8 + rnd_below(40);
        const struct guarded coef = guarded_blank(n * 128), quant = guarded_blank(128);
        const struct guarded want = guarded_blank(8 * stride), got = guarded_blank(8 * stride);
        for (size_t j = 0; j < n; j++)
            block_random((int16_t *)coef.p + j * 64);
        quant_random((int16_t *)quant.p);
        ref->idct_8x8(want.p, (ptrdiff_t)stride, (const int16_t *)coef.p, (const int16_t *)quant.p, (int)n);
        simd->idct_8x8(got.p, (ptrdiff_t)stride, (const int16_t *)coef.p, (const int16_t *)quant.p, (int)n);
        expect_same(&got, &want, "n=%zu stride=%zu", n, stride);
    }
}

CHECK_KERNEL(upsample_h2)
{
    for (int i = 0; i < 1500; i++) {
        const size_t n = 1 + rnd_size(MAX_WIDTH);
        const struct guarded src = guarded_random(n + 2);
        const struct guarded want = guarded_blank(2 * n), got = guarded_blank(2 * n);
        ref->upsample_h2(want.p, src.p + 1, n);
        simd->upsample_h2(got.p, src.p + 1, n);
        expect_same(&got, &want, "n=%zu", n);
    }
}

CHECK_KERNEL(upsample_h2v2)
{
    for (int i = 0; i < 1500; i++) {
        const size_t n = 1 + rnd_size(MAX_WIDTH);
        const struct guarded near = guarded_random(n + 2), far = guarded_random(n + 2);
        const struct guarded want = guarded_blank(2 * n), got = guarded_blank(2 * n);
        ref->upsample_h2v2(want.p, near.p + 1, far.p + 1, n);
        simd->upsample_h2v2(got.p, near.p + 1, far.p + 1, n);
        expect_same(&got, &want, "n=%zu", n);
    }
}

CHECK_KERNEL(upsample_v2)
{
    for (int i = 0; i < 1500; i++) {
        const size_t n = 1 + rnd_size(MAX_WIDTH);
        const int bias = 1 + (int)rnd_below(2);
        const struct guarded near = guarded_random(n), far = guarded_random(n);
        const struct guarded want = guarded_blank(n), got = guarded_blank(n);
        ref->upsample_v2(want.p, near.p, far.p, n, bias);
        simd->upsample_v2(got.p, near.p, far.p, n, bias);
        expect_same(&got, &want, "n=%zu bias=%d", n, bias);
    }
}

CHECK_KERNEL(ycc_to_rgb)
{
    for (int i = 0; i < 1500; i++) {
        const size_t n = 1 + rnd_size(MAX_WIDTH);
        const struct guarded y = guarded_random(n), cb = guarded_random(n), cr = guarded_random(n);
        const struct guarded want = guarded_blank(3 * n), got = guarded_blank(3 * n);
        ref->ycc_to_rgb(want.p, y.p, cb.p, cr.p, n);
        simd->ycc_to_rgb(got.p, y.p, cb.p, cr.p, n);
        expect_same(&got, &want, "n=%zu", n);
    }
}
