/* lut.c: 8-bit pixels through tables, which is how conversion and normalisation are done: 256 values per channel
 * hold every result that can occur. */
#include "kernel/level.h"

#include <string.h>

void dr__lut_f32_prepare(dr__lut_f32 *lut)
{
    for (int i = 0; i < DR__LUT_CHANNELS * 256; i++) {
        uint32_t bits;
        memcpy(&bits, &lut->value[i], sizeof bits);
        for (int b = 0; b < 4; b++)
            lut->bytes[i / 256][b][i % 256] = (uint8_t)(bits >> 8 * b);
    }
}

void dr__lut_u16_prepare(dr__lut_u16 *lut)
{
    for (int i = 0; i < DR__LUT_CHANNELS * 256; i++) {
        for (int b = 0; b < 2; b++)
            lut->bytes[i / 256][b][i % 256] = (uint8_t)(lut->value[i] >> 8 * b);
    }
}

/* Source column of output column x: the same, or counted from the right. */
#define COLUMN(x) (mirror ? w - 1 - (x) : (x))

/* The four functions differ only in the element type. */
#define LUT_PLANAR(name, type, table)                                                                                  \
    static void name(type *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,               \
                     const table *lut)                                                                                 \
    {                                                                                                                  \
        for (int k = 0; k < channels; k++) {                                                                           \
            for (size_t x = 0; x < w; x++)                                                                             \
                dst[k * plane + (ptrdiff_t)x] = lut->value[k * 256 + src[COLUMN(x) * (size_t)channels + (size_t)k]];   \
        }                                                                                                              \
    }

#define LUT_PACKED(name, type)                                                                                         \
    static void name(type *dst, const uint8_t *src, size_t w, int channels, int mirror, const type *lut)               \
    {                                                                                                                  \
        const size_t c = (size_t)channels;                                                                             \
        for (size_t x = 0; x < w; x++) {                                                                               \
            for (size_t k = 0; k < c; k++)                                                                             \
                dst[x * c + k] = lut[k * 256 + src[COLUMN(x) * c + k]];                                                \
        }                                                                                                              \
    }

LUT_PLANAR(lut_planar_f32, float, dr__lut_f32)
LUT_PLANAR(lut_planar_u16, uint16_t, dr__lut_u16)
LUT_PACKED(lut_packed_f32, float)
LUT_PACKED(lut_packed_u16, uint16_t)

static void lut_planar_u8(uint8_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                          const uint8_t *lut)
{
    for (int k = 0; k < channels; k++) {
        for (size_t x = 0; x < w; x++) {
            const uint8_t v = src[COLUMN(x) * (size_t)channels + (size_t)k];
            dst[k * plane + (ptrdiff_t)x] = lut ? lut[k * 256 + v] : v;
        }
    }
}

static void lut_u8(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *lut)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = lut[src[i]];
}

void dr__lut_c(dr__kernels *k)
{
    k->lut_planar_f32 = lut_planar_f32;
    k->lut_packed_f32 = lut_packed_f32;
    k->lut_planar_u16 = lut_planar_u16;
    k->lut_packed_u16 = lut_packed_u16;
    k->lut_planar_u8 = lut_planar_u8;
    k->lut_u8 = lut_u8;
}
