/* blend.c: PIL's Image.blend of 8-bit rows. */
#include "kernel/level.h"

/* One rounding after the product and one after the sum, both to float: what PIL's C computes on x86-64. */
static uint8_t blend(int a, int b, float f)
{
    const float product = f * (float)(b - a);
    const float v = (float)a + product;
    return (uint8_t)(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
}

static void blend_u8(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t n, float f)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = blend(a[i], b[i], f);
}

void dr__blend_c(dr__kernels *k)
{
    k->blend_u8 = blend_u8;
}
