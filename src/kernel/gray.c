/* gray.c: PIL's luma of RGB, ITU-R 601 weights in 16-bit fixed point. */
#include "kernel/level.h"

static void rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++, src += 3)
        dst[i] = (uint8_t)((src[0] * 19595u + src[1] * 38470u + src[2] * 7471u + 0x8000u) >> 16);
}

void dr__gray_c(dr__kernels *k)
{
    k->rgb_to_l = rgb_to_l;
}
