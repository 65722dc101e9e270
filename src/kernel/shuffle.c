/* shuffle.c: elements to byte planes and back. */
#include "kernel/codec_kernel.h"

#include "base/compiler.h"

DR_INLINE void to_planes(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size)
{
    for (size_t j = 0; j < size; j++)
        for (size_t i = first; i < n; i++)
            dst[j * n + i] = src[i * size + j];
}

DR_INLINE void from_planes(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size)
{
    for (size_t i = first; i < n; i++)
        for (size_t j = 0; j < size; j++)
            dst[i * size + j] = src[j * n + i];
}

/* The usual sizes as constants, so that the inner loops unroll. */
#define BY_SIZE(body)                                                                                                  \
    switch (size) {                                                                                                    \
    case 2:                                                                                                            \
        body(dst, src, first, n, 2);                                                                                   \
        break;                                                                                                         \
    case 3:                                                                                                            \
        body(dst, src, first, n, 3);                                                                                   \
        break;                                                                                                         \
    case 4:                                                                                                            \
        body(dst, src, first, n, 4);                                                                                   \
        break;                                                                                                         \
    case 8:                                                                                                            \
        body(dst, src, first, n, 8);                                                                                   \
        break;                                                                                                         \
    default:                                                                                                           \
        body(dst, src, first, n, size);                                                                                \
        break;                                                                                                         \
    }

void dr__shuffle_part(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size)
{
    BY_SIZE(to_planes)
}

void dr__unshuffle_part(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size)
{
    BY_SIZE(from_planes)
}

static void shuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    dr__shuffle_part(dst, src, 0, n, size);
}

static void unshuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    dr__unshuffle_part(dst, src, 0, n, size);
}

void dr__shuffle_c(dr__codec_kernels *k)
{
    k->shuffle = shuffle;
    k->unshuffle = unshuffle;
}
