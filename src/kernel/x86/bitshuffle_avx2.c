/* bitshuffle_avx2.c: bit planes, 32 elements at a time.
 *
 * 32 bytes of one byte plane give 32 bits of each of its 8 bit planes by movemask, highest bit first.  Back, the 32
 * bits of a plane are spread over 32 bytes by a shuffle and a comparison.  The byte planes of a tile are made on the
 * stack, and so are its bit planes, each of which is then written as a whole cache line: planes often lie a multiple of
 * 4 KiB apart, where the first-level cache holds the lines of no more than 8 or 12 of them.
 */
#include "kernel/codec_kernel.h"

#include <immintrin.h>
#include <string.h>

enum { STEP = 32, TILE = 512, MOST = 8 }; /* elements: of a vector, of a tile; bytes of an element */

static void bits_of(uint8_t *dst, size_t plane, const uint8_t *bytes, size_t n)
{
    int bits[8][TILE / STEP];
    for (size_t i = 0; i < n / STEP; i++) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(bytes + i * STEP));
        for (int b = 7; b >= 0; b--) {
            bits[b][i] = _mm256_movemask_epi8(x);
            x = _mm256_add_epi8(x, x);
        }
    }
    for (size_t b = 0; b < 8; b++)
        memcpy(dst + b * plane, bits[b], n / 8);
}

/* Elements of the next tile: whole vectors; 0: the rest is less than one. */
static size_t tile_of(size_t left, size_t size)
{
    const size_t n = left < TILE ? left / STEP * STEP : TILE;
    return size <= MOST ? n : 0;
}

static void bytes_of(uint8_t *bytes, const uint8_t *src, size_t plane, size_t n)
{
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3,
                                            3, 3, 3, 3, 3, 3, 3);
    const __m256i place = _mm256_set1_epi64x((long long)0x8040201008040201u);
    for (size_t i = 0; i < n; i += STEP) {
        __m256i x = _mm256_setzero_si256();
        for (int b = 0; b < 8; b++) {
            int bits;
            memcpy(&bits, src + (size_t)b * plane + i / 8, sizeof bits);
            const __m256i spreaded = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread), place);
            const __m256i set = _mm256_cmpeq_epi8(spreaded, place);
            x = _mm256_or_si256(x, _mm256_and_si256(set, _mm256_set1_epi8((char)(1 << b))));
        }
        _mm256_storeu_si256((__m256i *)(bytes + i), x);
    }
}

static void bitshuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    dr__codec_kernels k;
    dr__shuffle_avx2(&k);
    uint8_t planes[TILE * MOST];
    const size_t plane = n / 8;
    size_t i = 0;
    for (size_t t; (t = tile_of(n - i, size)); i += t) {
        k.shuffle(planes, src + i * size, t, size);
        for (size_t j = 0; j < size; j++)
            bits_of(dst + j * 8 * plane + i / 8, plane, planes + j * t, t);
    }
    dr__bitshuffle_part(dst, src, i, n, size);
}

static void bitunshuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    dr__codec_kernels k;
    dr__shuffle_avx2(&k);
    uint8_t planes[TILE * MOST];
    const size_t plane = n / 8;
    size_t i = 0;
    for (size_t t; (t = tile_of(n - i, size)); i += t) {
        for (size_t j = 0; j < size; j++)
            bytes_of(planes + j * t, src + j * 8 * plane + i / 8, plane, t);
        k.unshuffle(dst + i * size, planes, t, size);
    }
    dr__bitunshuffle_part(dst, src, i, n, size);
}

void dr__bitshuffle_avx2(dr__codec_kernels *k)
{
    k->bitshuffle = bitshuffle;
    k->bitunshuffle = bitunshuffle;
}
