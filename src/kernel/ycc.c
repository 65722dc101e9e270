/* ycc.c: JPEG's full-range YCbCr (ITU-R 601) to RGB, in libjpeg's fixed point: 16 fraction bits, red and blue rounded
 * before luma is added, green's two parts rounded together. */
#include "kernel/level.h"

static uint8_t clip8(int v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void ycc_to_rgb(uint8_t *dst, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t n)
{
    for (size_t i = 0; i < n; i++, dst += 3) {
        const int b = cb[i] - 128, r = cr[i] - 128;
        dst[0] = clip8(y[i] + ((r * 91881 + 32768) >> 16));
        dst[1] = clip8(y[i] + ((b * -22554 - r * 46802 + 32768) >> 16));
        dst[2] = clip8(y[i] + ((b * 116130 + 32768) >> 16));
    }
}

void dr__ycc_c(dr__kernels *k)
{
    k->ycc_to_rgb = ycc_to_rgb;
}
