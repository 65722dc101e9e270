/* gray_avx2.c: PIL's luma of RGB, 8 pixels at a time.
 *
 * 38470 does not fit 16 signed bits, so green counts twice: r * 19595 + g * 19235 and b * 7471 + g * 19235.
 */
#include "kernel/level.h"

#include <immintrin.h>

/* 4 pixels of each lane, as pairs (r, g) and (b, g). */
static inline __m256i luma_8(__m256i bytes)
{
    const __m256i order_rg =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1));
    const __m256i order_bg =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(2, -1, 1, -1, 5, -1, 4, -1, 8, -1, 7, -1, 11, -1, 10, -1));
    const __m256i weight_rg = _mm256_set1_epi32(19235 << 16 | 19595), weight_bg = _mm256_set1_epi32(19235 << 16 | 7471);
    const __m256i rg = _mm256_madd_epi16(_mm256_shuffle_epi8(bytes, order_rg), weight_rg);
    const __m256i bg = _mm256_madd_epi16(_mm256_shuffle_epi8(bytes, order_bg), weight_bg);
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(rg, bg), _mm256_set1_epi32(0x8000));
    return _mm256_srli_epi32(sum, 16);
}

static void rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i * 3 + 28 <= n * 3; i += 8) {
        const __m128i first = _mm_loadu_si128((const __m128i *)(src + i * 3));
        const __m128i second = _mm_loadu_si128((const __m128i *)(src + i * 3 + 12));
        const __m256i luma = luma_8(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1));
        const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(luma), _mm256_extracti128_si256(luma, 1));
        _mm_storel_epi64((__m128i *)(dst + i), _mm_packus_epi16(words, words));
    }
    for (; i < n; i++)
        dst[i] = (uint8_t)((src[i * 3] * 19595u + src[i * 3 + 1] * 38470u + src[i * 3 + 2] * 7471u + 0x8000u) >> 16);
}

void dr__gray_avx2(dr__kernels *k)
{
    k->rgb_to_l = rgb_to_l;
}
