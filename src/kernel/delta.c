/* delta.c: differences of neighbours, small ones of either sign as small numbers. */
#include "kernel/codec_kernel.h"

#include <string.h>

#include "base/compiler.h"

/* One pair of functions for each width. */
#define DELTA(type, bits)                                                                                              \
    static void delta_##bits(uint8_t *dst, const uint8_t *src, size_t n)                                               \
    {                                                                                                                  \
        type last = 0;                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type x, z;                                                                                                 \
            memcpy(&x, src + i * sizeof x, sizeof x);                                                                  \
            const type d = (type)(x - last);                                                                           \
            z = (type)((type)(d << 1) ^ (type)(0 - (d >> (bits - 1))));                                                \
            memcpy(dst + i * sizeof z, &z, sizeof z);                                                                  \
            last = x;                                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void undelta_##bits(uint8_t *dst, const uint8_t *src, size_t n)                                             \
    {                                                                                                                  \
        type last = 0;                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type z;                                                                                                    \
            memcpy(&z, src + i * sizeof z, sizeof z);                                                                  \
            last = (type)(last + (type)((z >> 1) ^ (type)(0 - (z & 1))));                                              \
            memcpy(dst + i * sizeof last, &last, sizeof last);                                                         \
        }                                                                                                              \
    }

DELTA(uint8_t, 8)
DELTA(uint16_t, 16)
DELTA(uint32_t, 32)
DELTA(uint64_t, 64)

void dr__delta_scalar(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    switch (size) {
    case 1:
        delta_8(dst, src, n);
        break;
    case 2:
        delta_16(dst, src, n);
        break;
    case 4:
        delta_32(dst, src, n);
        break;
    default:
        delta_64(dst, src, n);
        break;
    }
}

void dr__undelta_scalar(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    switch (size) {
    case 1:
        undelta_8(dst, src, n);
        break;
    case 2:
        undelta_16(dst, src, n);
        break;
    case 4:
        undelta_32(dst, src, n);
        break;
    default:
        undelta_64(dst, src, n);
        break;
    }
}

void dr__delta_c(dr__codec_kernels *k)
{
    k->delta = dr__delta_scalar;
    k->undelta = dr__undelta_scalar;
}
