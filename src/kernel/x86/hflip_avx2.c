/* hflip_avx2.c: mirrored rows of pixels of 1, 2, 3, 4 and 8 bytes; other sizes as the reference. */
#include "kernel/level.h"

#include <immintrin.h>
#include <string.h>

/* Byte order of 16 bytes whose first 16 / pixel pixels are reversed. */
static inline __m128i reversed(int pixel)
{
    char order[16];
    const int n = 16 / pixel;
    for (int i = 0; i < 16; i++)
        order[i] = (char)(i < n * pixel ? (n - 1 - i / pixel) * pixel + i % pixel : -1);
    return _mm_loadu_si128((const __m128i *)order);
}

/* Pixels that fill 16 bytes: two registers' halves change places. */
static size_t flip_even(uint8_t *dst, const uint8_t *src, size_t bytes, int pixel)
{
    const __m256i order = _mm256_broadcastsi128_si256(reversed(pixel));
    size_t at = 0;
    for (; at + 32 <= bytes; at += 32) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(src + bytes - at - 32));
        const __m256i swapped = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, order), 0x4e);
        _mm256_storeu_si256((__m256i *)(dst + at), swapped);
    }
    return at;
}

/* Three bytes: 5 pixels of 16 bytes a step; the 16th byte is written again by the next step. */
static size_t flip_3(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    const __m128i order = reversed(3);
    size_t at = 0;
    for (; at + 16 <= bytes; at += 15) {
        /* the 15 wanted bytes are the upper ones of 16, so that nothing before the row is read */
        const __m128i v = _mm_loadu_si128((const __m128i *)(src + bytes - at - 16));
        _mm_storeu_si128((__m128i *)(dst + at), _mm_shuffle_epi8(_mm_srli_si128(v, 1), order));
    }
    return at;
}

static void hflip_row(uint8_t *dst, const uint8_t *src, size_t w, size_t pixel)
{
    const size_t bytes = w * pixel;
    size_t at = 0;
    switch (pixel) {
    case 1:
        at = flip_even(dst, src, bytes, 1);
        break;
    case 2:
        at = flip_even(dst, src, bytes, 2);
        break;
    case 3:
        at = flip_3(dst, src, bytes);
        break;
    case 4:
        at = flip_even(dst, src, bytes, 4);
        break;
    case 8:
        at = flip_even(dst, src, bytes, 8);
        break;
    default:
        break;
    }
    for (; at < bytes; at += pixel)
        memcpy(dst + at, src + bytes - at - pixel, pixel);
}

void dr__hflip_avx2(dr__kernels *k)
{
    k->hflip_row = hflip_row;
}
