/* blend_avx2.c: PIL's Image.blend, 8 floats at a time. */
#include "kernel/level.h"

#include <immintrin.h>

/* 8 results as 32-bit integers.  max with zero second turns -0 and negatives into 0, as the reference's test does. */
static inline __m256i blend_8(const uint8_t *a, const uint8_t *b, __m256 f)
{
    const __m256i ia = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)a));
    const __m256i ib = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)b));
    const __m256 product = _mm256_mul_ps(f, _mm256_cvtepi32_ps(_mm256_sub_epi32(ib, ia)));
    const __m256 v = _mm256_add_ps(_mm256_cvtepi32_ps(ia), product);
    return _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(v, _mm256_setzero_ps()), _mm256_set1_ps(255.0f)));
}

static inline void blend_32(uint8_t *dst, const uint8_t *a, const uint8_t *b, __m256 f)
{
    const __m256i words0 = _mm256_packs_epi32(blend_8(a, b, f), blend_8(a + 8, b + 8, f));
    const __m256i words1 = _mm256_packs_epi32(blend_8(a + 16, b + 16, f), blend_8(a + 24, b + 24, f));
    const __m256i bytes = _mm256_packus_epi16(words0, words1);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *)dst, _mm256_permutevar8x32_epi32(bytes, order));
}

static void blend_u8(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t n, float f)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        blend_32(dst + i, a + i, b + i, _mm256_set1_ps(f));
    for (; i < n; i++) {
        const float product = f * (float)(b[i] - a[i]);
        const float v = (float)a[i] + product;
        dst[i] = (uint8_t)(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
    }
}

void dr__blend_avx2(dr__kernels *k)
{
    k->blend_u8 = blend_u8;
}
