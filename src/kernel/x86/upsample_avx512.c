/* upsample_avx512.c: JPEG's chroma to twice the size, 64 samples at a time.  The arithmetic is that of upsample_avx2.c.
 */
#include "kernel/level.h"

#include <immintrin.h>

#include "base/compiler.h"

enum { STEP = 64 };

struct words {
    __m512i a, b; /* the lower and the upper eight samples of each 128-bit lane */
};

static inline __mmask64 lowest(size_t n)
{
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

/* 3 near + far. */
DR_INLINE struct words three_to_one(const uint8_t *near, const uint8_t *far)
{
    const __m512i weight = _mm512_set1_epi16(1 << 8 | 3), x = _mm512_loadu_si512(near), y = _mm512_loadu_si512(far);
    return (struct words){ _mm512_maddubs_epi16(_mm512_unpacklo_epi8(x, y), weight),
                           _mm512_maddubs_epi16(_mm512_unpackhi_epi8(x, y), weight) };
}

/* The first n of 128 bytes; a has the lower and b the upper 16 bytes of each 32. */
DR_INLINE void store(uint8_t *dst, size_t n, __m512i a, __m512i b)
{
    const __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0),
                  last = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    const __m512i x = _mm512_permutex2var_epi64(a, first, b), y = _mm512_permutex2var_epi64(a, last, b);
    _mm512_mask_storeu_epi8(dst, lowest(n), x);
    _mm512_mask_storeu_epi8(dst + 64, lowest(n > 64 ? n - 64 : 0), y);
}

/* (even + bias_even) >> shift, and (odd + bias_odd) >> shift in the upper byte. */
DR_INLINE __m512i both(__m512i even, __m512i odd, int bias_even, int bias_odd, int shift)
{
    even = _mm512_srli_epi16(_mm512_add_epi16(even, _mm512_set1_epi16((short)bias_even)), shift);
    odd = _mm512_slli_epi16(_mm512_add_epi16(odd, _mm512_set1_epi16((short)bias_odd)), 8 - shift);
    return _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, even, odd);
}

DR_INLINE void h2_64(uint8_t *dst, const uint8_t *src, size_t n)
{
    const struct words even = three_to_one(src, src - 1), odd = three_to_one(src, src + 1);
    store(dst, 2 * n, both(even.a, odd.a, 1, 2, 2), both(even.b, odd.b, 1, 2, 2));
}

/* 3 here + before and 3 here + after, rounded. */
DR_INLINE __m512i h2v2_32(__m512i before, __m512i here, __m512i after)
{
    const __m512i thrice = _mm512_add_epi16(here, _mm512_add_epi16(here, here));
    return both(_mm512_add_epi16(thrice, before), _mm512_add_epi16(thrice, after), 8, 7, 4);
}

DR_INLINE void h2v2_64(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n)
{
    const struct words before = three_to_one(near - 1, far - 1), here = three_to_one(near, far);
    const struct words after = three_to_one(near + 1, far + 1);
    store(dst, 2 * n, h2v2_32(before.a, here.a, after.a), h2v2_32(before.b, here.b, after.b));
}

DR_INLINE void v2_64(uint8_t *dst, const uint8_t *near, const uint8_t *far, __m512i bias, size_t n)
{
    const struct words sum = three_to_one(near, far);
    const __m512i a = _mm512_srli_epi16(_mm512_add_epi16(sum.a, bias), 2);
    const __m512i b = _mm512_srli_epi16(_mm512_add_epi16(sum.b, bias), 2);
    _mm512_mask_storeu_epi8(dst, lowest(n), _mm512_packus_epi16(a, b));
}

static void upsample_h2(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n >= STEP; n -= STEP, dst += 2 * STEP, src += STEP)
        h2_64(dst, src, STEP);
    if (n > 0)
        h2_64(dst, src, n);
}

static void upsample_h2v2(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n)
{
    for (; n >= STEP; n -= STEP, dst += 2 * STEP, near += STEP, far += STEP)
        h2v2_64(dst, near, far, STEP);
    if (n > 0)
        h2v2_64(dst, near, far, n);
}

static void upsample_v2(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n, int bias)
{
    const __m512i biases = _mm512_set1_epi16((short)bias);
    for (; n >= STEP; n -= STEP, dst += STEP, near += STEP, far += STEP)
        v2_64(dst, near, far, biases, STEP);
    if (n > 0)
        v2_64(dst, near, far, biases, n);
}

void dr__upsample_avx512(dr__kernels *k)
{
    k->upsample_h2 = upsample_h2;
    k->upsample_h2v2 = upsample_h2v2;
    k->upsample_v2 = upsample_v2;
}
