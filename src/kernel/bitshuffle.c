/* bitshuffle.c: elements to bit planes and back, 8 x 8 bits at a time. */
#include "kernel/codec_kernel.h"

/* Bit c of byte r becomes bit r of byte c (Hacker's Delight, 7-3). */
static inline uint64_t transpose(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & 0x00aa00aa00aa00aau;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000ccccu;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0u;
    return x ^ t ^ t << 28;
}

void dr__bitshuffle_part(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size)
{
    const size_t plane = n / 8;
    for (size_t i = first / 8; i < plane; i++) {
        for (size_t j = 0; j < size; j++) {
            uint64_t x = 0;
            for (unsigned r = 0; r < 8; r++)
                x |= (uint64_t)src[(i * 8 + r) * size + j] << 8 * r;
            x = transpose(x);
            for (unsigned b = 0; b < 8; b++)
                dst[(j * 8 + b) * plane + i] = (uint8_t)(x >> 8 * b);
        }
    }
}

void dr__bitunshuffle_part(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size)
{
    const size_t plane = n / 8;
    for (size_t i = first / 8; i < plane; i++) {
        for (size_t j = 0; j < size; j++) {
            uint64_t x = 0;
            for (unsigned b = 0; b < 8; b++)
                x |= (uint64_t)src[(j * 8 + b) * plane + i] << 8 * b;
            x = transpose(x);
            for (unsigned r = 0; r < 8; r++)
                dst[(i * 8 + r) * size + j] = (uint8_t)(x >> 8 * r);
        }
    }
}

static void bitshuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    dr__bitshuffle_part(dst, src, 0, n, size);
}

static void bitunshuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    dr__bitunshuffle_part(dst, src, 0, n, size);
}

void dr__bitshuffle_c(dr__codec_kernels *k)
{
    k->bitshuffle = bitshuffle;
    k->bitunshuffle = bitunshuffle;
}
