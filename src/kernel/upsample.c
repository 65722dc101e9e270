/* upsample.c: JPEG's chroma to twice the size, libjpeg's "fancy" kind: 3/4 of the nearer and 1/4 of the farther sample.
 */
#include "kernel/level.h"

static void upsample_h2(uint8_t *dst, const uint8_t *src, size_t n)
{
    const uint8_t *const before = src - 1;
    for (size_t i = 0; i < n; i++) {
        dst[2 * i] = (uint8_t)((3 * src[i] + before[i] + 1) >> 2);
        dst[2 * i + 1] = (uint8_t)((3 * src[i] + src[i + 1] + 2) >> 2);
    }
}

static void upsample_h2v2(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n)
{
    int before = 3 * near[-1] + far[-1], here = 3 * near[0] + far[0];
    for (size_t i = 0; i < n; i++) {
        const int after = 3 * near[i + 1] + far[i + 1];
        dst[2 * i] = (uint8_t)((3 * here + before + 8) >> 4);
        dst[2 * i + 1] = (uint8_t)((3 * here + after + 7) >> 4);
        before = here;
        here = after;
    }
}

static void upsample_v2(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n, int bias)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)((3 * near[i] + far[i] + bias) >> 2);
}

void dr__upsample_c(dr__kernels *k)
{
    k->upsample_h2 = upsample_h2;
    k->upsample_h2v2 = upsample_h2v2;
    k->upsample_v2 = upsample_v2;
}
