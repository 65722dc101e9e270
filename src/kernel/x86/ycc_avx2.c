/* ycc_avx2.c: YCbCr to interleaved RGB, 32 pixels at a time.
 *
 * Chroma less 128 has 8 bits, so _mm256_mulhrs_epi16, which rounds (a * b) / 32768, gives red's and blue's parts
 * exactly: 1.402 as 1 + 13173 / 32768 (equal to the reference for all 256 values) and 1.772 as 1 + 25297 / 32768.
 * Green's two parts are rounded together and need 32 bits.
 */
#include "kernel/level.h"

#include <immintrin.h>
#include <string.h>

#include "base/compiler.h"

/* Words of 16 pixels; chroma less 128. */
static inline __m256i red(__m256i y, __m256i cr)
{
    return _mm256_add_epi16(_mm256_add_epi16(y, cr), _mm256_mulhrs_epi16(cr, _mm256_set1_epi16(13173)));
}

static inline __m256i blue(__m256i y, __m256i cb)
{
    return _mm256_add_epi16(_mm256_add_epi16(y, cb), _mm256_mulhrs_epi16(cb, _mm256_set1_epi16(25297)));
}

static inline __m256i green(__m256i y, __m256i cb, __m256i cr)
{
    const __m256i weight = _mm256_set1_epi32((int)((unsigned)-23401 << 16 | (uint16_t)-11277));
    const __m256i half = _mm256_set1_epi32(1 << 14);
    const __m256i left = _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), weight);
    const __m256i right = _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), weight);
    const __m256i sum = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(left, half), 15),
                                           _mm256_srai_epi32(_mm256_add_epi32(right, half), 15));
    return _mm256_add_epi16(y, sum);
}

/* Byte 3 i + c of a lane's 48 bytes is pixel i of channel c.  3 and 16 have no common factor, so that one shuffle
 * brings all 16 pixels of a channel to their place modulo 16; the three parts of 16 bytes each choose among the
 * channels. */
DR_INLINE void store_rgb(uint8_t *dst, __m256i r, __m256i g, __m256i b)
{
    const __m256i order_r =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5));
    const __m256i order_g =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10));
    const __m256i order_b =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15));
    /* bytes 1, 4, 7, ... and 2, 5, 8, ... */
    const __m256i third_1 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0));
    const __m256i third_2 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0));
    r = _mm256_shuffle_epi8(r, order_r);
    g = _mm256_shuffle_epi8(g, order_g);
    b = _mm256_shuffle_epi8(b, order_b);
    const __m256i part[3] = { _mm256_blendv_epi8(_mm256_blendv_epi8(r, g, third_1), b, third_2),
                              _mm256_blendv_epi8(_mm256_blendv_epi8(g, b, third_1), r, third_2),
                              _mm256_blendv_epi8(_mm256_blendv_epi8(b, r, third_1), g, third_2) };
    for (int i = 0; i < 3; i++) {
        _mm_storeu_si128((__m128i *)(dst + 16 * i), _mm256_castsi256_si128(part[i]));
        _mm_storeu_si128((__m128i *)(dst + 16 * i + 48), _mm256_extracti128_si256(part[i], 1));
    }
}

DR_INLINE void convert_32(uint8_t *dst, const uint8_t *y, const uint8_t *cb, const uint8_t *cr)
{
    const __m256i zero = _mm256_setzero_si256(), centre = _mm256_set1_epi16(128);
    const __m256i luma = _mm256_loadu_si256((const __m256i *)y);
    const __m256i blues = _mm256_loadu_si256((const __m256i *)cb), reds = _mm256_loadu_si256((const __m256i *)cr);
    const __m256i y0 = _mm256_unpacklo_epi8(luma, zero), y1 = _mm256_unpackhi_epi8(luma, zero);
    const __m256i cb0 = _mm256_sub_epi16(_mm256_unpacklo_epi8(blues, zero), centre);
    const __m256i cb1 = _mm256_sub_epi16(_mm256_unpackhi_epi8(blues, zero), centre);
    const __m256i cr0 = _mm256_sub_epi16(_mm256_unpacklo_epi8(reds, zero), centre);
    const __m256i cr1 = _mm256_sub_epi16(_mm256_unpackhi_epi8(reds, zero), centre);
    store_rgb(dst, _mm256_packus_epi16(red(y0, cr0), red(y1, cr1)),
              _mm256_packus_epi16(green(y0, cb0, cr0), green(y1, cb1, cr1)),
              _mm256_packus_epi16(blue(y0, cb0), blue(y1, cb1)));
}

static void ycc_to_rgb(uint8_t *dst, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        convert_32(dst + 3 * i, y + i, cb + i, cr + i);
    if (i < n) {
        uint8_t rest[96];
        convert_32(rest, y + i, cb + i, cr + i);
        memcpy(dst + 3 * i, rest, 3 * (n - i));
    }
}

void dr__ycc_avx2(dr__kernels *k)
{
    k->ycc_to_rgb = ycc_to_rgb;
}
