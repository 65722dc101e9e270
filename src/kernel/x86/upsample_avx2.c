/* upsample_avx2.c: JPEG's chroma to twice the size, 32 samples at a time.
 *
 * Neighbours are loaded from one byte further left or right.  A result of 16 bits holds the even output in its lower
 * and the odd one in its upper byte.
 */
#include "kernel/level.h"

#include <immintrin.h>
#include <string.h>

#include "base/compiler.h"

enum { STEP = 32 };

struct words {
    __m256i a, b; /* samples 0-7 and 16-23, 8-15 and 24-31 */
};

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* 3 near + far. */
DR_INLINE struct words three_to_one(const uint8_t *near, const uint8_t *far)
{
    const __m256i weight = _mm256_set1_epi16(1 << 8 | 3), x = load(near), y = load(far);
    return (struct words){ _mm256_maddubs_epi16(_mm256_unpacklo_epi8(x, y), weight),
                           _mm256_maddubs_epi16(_mm256_unpackhi_epi8(x, y), weight) };
}

DR_INLINE void store(uint8_t *dst, __m256i a, __m256i b)
{
    _mm_storeu_si128((__m128i *)dst, _mm256_castsi256_si128(a));
    _mm_storeu_si128((__m128i *)(dst + 16), _mm256_castsi256_si128(b));
    _mm_storeu_si128((__m128i *)(dst + 32), _mm256_extracti128_si256(a, 1));
    _mm_storeu_si128((__m128i *)(dst + 48), _mm256_extracti128_si256(b, 1));
}

/* (even + bias_even) >> shift, and (odd + bias_odd) >> shift in the upper byte. */
DR_INLINE __m256i both(__m256i even, __m256i odd, int bias_even, int bias_odd, int shift)
{
    const __m256i upper = _mm256_set1_epi16((short)0xff00);
    even = _mm256_srli_epi16(_mm256_add_epi16(even, _mm256_set1_epi16((short)bias_even)), shift);
    odd = _mm256_slli_epi16(_mm256_add_epi16(odd, _mm256_set1_epi16((short)bias_odd)), 8 - shift);
    return _mm256_or_si256(even, _mm256_and_si256(odd, upper));
}

DR_INLINE void h2_32(uint8_t *dst, const uint8_t *src)
{
    const struct words even = three_to_one(src, src - 1), odd = three_to_one(src, src + 1);
    store(dst, both(even.a, odd.a, 1, 2, 2), both(even.b, odd.b, 1, 2, 2));
}

/* 3 here + before and 3 here + after, rounded. */
DR_INLINE __m256i h2v2_16(__m256i before, __m256i here, __m256i after)
{
    const __m256i thrice = _mm256_add_epi16(here, _mm256_add_epi16(here, here));
    return both(_mm256_add_epi16(thrice, before), _mm256_add_epi16(thrice, after), 8, 7, 4);
}

DR_INLINE void h2v2_32(uint8_t *dst, const uint8_t *near, const uint8_t *far)
{
    const struct words before = three_to_one(near - 1, far - 1), here = three_to_one(near, far);
    const struct words after = three_to_one(near + 1, far + 1);
    store(dst, h2v2_16(before.a, here.a, after.a), h2v2_16(before.b, here.b, after.b));
}

DR_INLINE void v2_32(uint8_t *dst, const uint8_t *near, const uint8_t *far, __m256i bias)
{
    const struct words sum = three_to_one(near, far);
    const __m256i a = _mm256_srli_epi16(_mm256_add_epi16(sum.a, bias), 2);
    const __m256i b = _mm256_srli_epi16(_mm256_add_epi16(sum.b, bias), 2);
    _mm256_storeu_si256((__m256i *)dst, _mm256_packus_epi16(a, b));
}

static void upsample_h2(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        h2_32(dst + 2 * i, src + i);
    if (i < n) {
        uint8_t rest[2 * STEP];
        h2_32(rest, src + i);
        memcpy(dst + 2 * i, rest, 2 * (n - i));
    }
}

static void upsample_h2v2(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        h2v2_32(dst + 2 * i, near + i, far + i);
    if (i < n) {
        uint8_t rest[2 * STEP];
        h2v2_32(rest, near + i, far + i);
        memcpy(dst + 2 * i, rest, 2 * (n - i));
    }
}

static void upsample_v2(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n, int bias)
{
    const __m256i biases = _mm256_set1_epi16((short)bias);
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        v2_32(dst + i, near + i, far + i, biases);
    if (i < n) {
        uint8_t rest[STEP];
        v2_32(rest, near + i, far + i, biases);
        memcpy(dst + i, rest, n - i);
    }
}

void dr__upsample_avx2(dr__kernels *k)
{
    k->upsample_h2 = upsample_h2;
    k->upsample_h2v2 = upsample_h2v2;
    k->upsample_v2 = upsample_v2;
}
