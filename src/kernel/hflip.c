/* hflip.c: mirror a row of pixels of any size. */
#include "kernel/level.h"

#include <string.h>

static void hflip_row(uint8_t *dst, const uint8_t *src, size_t w, size_t pixel)
{
    for (size_t x = 0; x < w; x++)
        memcpy(dst + x * pixel, src + (w - 1 - x) * pixel, pixel);
}

void dr__hflip_c(dr__kernels *k)
{
    k->hflip_row = hflip_row;
}
