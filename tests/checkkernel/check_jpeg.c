/* check_jpeg.c: the inner loops of the JPEG decoder. */
#include <stdbool.h>
#include <string.h>

#include "checkkernel.h"

enum { MAX_BLOCKS = 40, MAX_WIDTH = 520 };

/* Values below 1 << bits with either sign; 16 bits: often the very ends, which only a broken file holds. */
static int16_t coefficient(size_t bits, bool ends)
{
    const int value = (int)rnd_below((size_t)1 << bits) - (1 << bits) / 2;
    return (int16_t)(!ends ? value : value < 0 ? INT16_MIN : INT16_MAX);
}

/* Full blocks, few coefficients, row 0 alone, DC alone; from the size of a photograph's to any. */
static void block_random(int16_t *coef)
{
    static const size_t areas[] = { 64, 64, 8, 1 };
    const size_t bits = rnd_below(2) ? 16 : 1 + rnd_below(12), area = areas[rnd_below(DR_COUNT(areas))];
    const size_t one_in = rnd_below(2) ? 1 : 1 + rnd_below(20);
    const bool ends = bits == 16 && rnd_below(4) == 0;
    memset(coef, 0, 64 * sizeof(*coef));
    for (size_t i = 0; i < area; i++)
        if (rnd_below(one_in) == 0)
            coef[i] = coefficient(bits, ends);
}

/* Steps of 8 bits, of 16 bits, and 1, with which coefficients are taken as they are. */
static void quant_random(int16_t *quant)
{
    const size_t most = (size_t[]){ 1, 20, 255, 65535 }[rnd_below(4)];
    for (size_t i = 0; i < 64; i++)
        quant[i] = (int16_t)(uint16_t)(1 + rnd_below(most));
}

/* A small row 0: then a version with a shortcut for sane coefficients meets the others' overflows without it. */
static void tame_row_0(int16_t *coef, int16_t *quant, size_t n)
{
    for (size_t i = 0; i < 8; i++)
        quant[i] = 1;
    for (size_t i = 0; i < n * 64; i++)
        if (i % 64 < 8)
            coef[i] = coefficient(14, false);
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
        if (rnd_below(2))
            tame_row_0((int16_t *)coef.p, (int16_t *)quant.p, n);
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

/* Every pair of chroma values. */
static void ycc_all(const dr__kernels *ref, const dr__kernels *simd, uint8_t luma)
{
    for (int b = 0; b < 256; b++) {
        const struct guarded y = guarded_blank(256), cb = guarded_blank(256), cr = guarded_blank(256);
        const struct guarded want = guarded_blank(3 * 256), got = guarded_blank(3 * 256);
        memset(y.p, luma, 256);
        memset(cb.p, b, 256);
        for (int r = 0; r < 256; r++)
            cr.p[r] = (uint8_t)r;
        ref->ycc_to_rgb(want.p, y.p, cb.p, cr.p, 256);
        simd->ycc_to_rgb(got.p, y.p, cb.p, cr.p, 256);
        expect_same(&got, &want, "y=%d cb=%d", luma, b);
    }
}

CHECK_KERNEL(ycc_to_rgb)
{
    ycc_all(ref, simd, 0);
    ycc_all(ref, simd, 128);
    ycc_all(ref, simd, 255);
    for (int i = 0; i < 1500; i++) {
        const size_t n = 1 + rnd_size(MAX_WIDTH);
        const struct guarded y = guarded_random(n), cb = guarded_random(n), cr = guarded_random(n);
        const struct guarded want = guarded_blank(3 * n), got = guarded_blank(3 * n);
        ref->ycc_to_rgb(want.p, y.p, cb.p, cr.p, n);
        simd->ycc_to_rgb(got.p, y.p, cb.p, cr.p, n);
        expect_same(&got, &want, "n=%zu", n);
    }
}
