/* ycc_avx512.c: YCbCr to interleaved RGB, 64 pixels at a time.  The arithmetic is that of ycc_avx2.c. */
#include "kernel/level.h"

#include <immintrin.h>

#include "base/compiler.h"

/* Words of 32 pixels; chroma less 128. */
static inline __m512i red(__m512i y, __m512i cr)
{
    return _mm512_add_epi16(_mm512_add_epi16(y, cr), _mm512_mulhrs_epi16(cr, _mm512_set1_epi16(13173)));
}

static inline __m512i blue(__m512i y, __m512i cb)
{
    return _mm512_add_epi16(_mm512_add_epi16(y, cb), _mm512_mulhrs_epi16(cb, _mm512_set1_epi16(25297)));
}

static inline __m512i green(__m512i y, __m512i cb, __m512i cr)
{
    const __m512i weight = _mm512_set1_epi32((int)((unsigned)-23401 << 16 | (uint16_t)-11277));
    const __m512i half = _mm512_set1_epi32(1 << 14);
    const __m512i left = _mm512_dpwssd_epi32(half, _mm512_unpacklo_epi16(cb, cr), weight);
    const __m512i right = _mm512_dpwssd_epi32(half, _mm512_unpackhi_epi16(cb, cr), weight);
    return _mm512_add_epi16(y, _mm512_packs_epi32(_mm512_srai_epi32(left, 15), _mm512_srai_epi32(right, 15)));
}

/* The three parts of 64 bytes of 64 pixels. */
struct rgb {
    __m512i part[3];
};

/* Byte 3 i + c of 192 bytes is pixel i of channel c.  3 and 64 have no common factor, so that one permutation brings
 * all pixels of a channel to their place modulo 64; the three parts choose among the channels. */
DR_INLINE struct rgb interleave(__m512i r, __m512i g, __m512i b)
{
    _Alignas(64) static const uint8_t order[64] = {
        0,  43, 22, 1,  44, 23, 2,  45, 24, 3,  46, 25, 4,  47, 26, 5,  48, 27, 6,  49, 28, 7,
        50, 29, 8,  51, 30, 9,  52, 31, 10, 53, 32, 11, 54, 33, 12, 55, 34, 13, 56, 35, 14, 57,
        36, 15, 58, 37, 16, 59, 38, 17, 60, 39, 18, 61, 40, 19, 62, 41, 20, 63, 42, 21,
    };
    const __mmask64 third_1 = 0x2492492492492492, third_2 = 0x4924924924924924; /* bytes 1, 4, 7 ... and 2, 5, 8 ... */
    const __m512i order_r = _mm512_load_si512(order);
    const __m512i order_g = _mm512_sub_epi8(order_r, _mm512_set1_epi8(43));
    const __m512i order_b = _mm512_sub_epi8(order_r, _mm512_set1_epi8(22));
    r = _mm512_permutexvar_epi8(order_r, r);
    g = _mm512_permutexvar_epi8(order_g, g);
    b = _mm512_permutexvar_epi8(order_b, b);
    return (struct rgb){ { _mm512_mask_blend_epi8(third_2, _mm512_mask_blend_epi8(third_1, r, g), b),
                           _mm512_mask_blend_epi8(third_2, _mm512_mask_blend_epi8(third_1, g, b), r),
                           _mm512_mask_blend_epi8(third_2, _mm512_mask_blend_epi8(third_1, b, r), g) } };
}

DR_INLINE struct rgb convert_64(__m512i luma, __m512i blues, __m512i reds)
{
    const __m512i zero = _mm512_setzero_si512(), centre = _mm512_set1_epi16(128);
    const __m512i y0 = _mm512_unpacklo_epi8(luma, zero), y1 = _mm512_unpackhi_epi8(luma, zero);
    const __m512i cb0 = _mm512_sub_epi16(_mm512_unpacklo_epi8(blues, zero), centre);
    const __m512i cb1 = _mm512_sub_epi16(_mm512_unpackhi_epi8(blues, zero), centre);
    const __m512i cr0 = _mm512_sub_epi16(_mm512_unpacklo_epi8(reds, zero), centre);
    const __m512i cr1 = _mm512_sub_epi16(_mm512_unpackhi_epi8(reds, zero), centre);
    return interleave(_mm512_packus_epi16(red(y0, cr0), red(y1, cr1)),
                      _mm512_packus_epi16(green(y0, cb0, cr0), green(y1, cb1, cr1)),
                      _mm512_packus_epi16(blue(y0, cb0), blue(y1, cb1)));
}

/* The lowest n of 64 bits. */
static inline __mmask64 lowest(size_t n)
{
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

static void ycc_to_rgb(uint8_t *dst, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t n)
{
    for (; n >= 64; n -= 64, dst += 192, y += 64, cb += 64, cr += 64) {
        const struct rgb rgb = convert_64(_mm512_loadu_si512(y), _mm512_loadu_si512(cb), _mm512_loadu_si512(cr));
        for (int i = 0; i < 3; i++)
            _mm512_storeu_si512(dst + 64 * i, rgb.part[i]);
    }
    if (n == 0)
        return;
    const __mmask64 m = lowest(n);
    const struct rgb rgb =
        convert_64(_mm512_maskz_loadu_epi8(m, y), _mm512_maskz_loadu_epi8(m, cb), _mm512_maskz_loadu_epi8(m, cr));
    for (size_t i = 0; i < 3; i++)
        _mm512_mask_storeu_epi8(dst + 64 * i, lowest(3 * n > 64 * i ? 3 * n - 64 * i : 0), rgb.part[i]);
}

void dr__ycc_avx512(dr__kernels *k)
{
    k->ycc_to_rgb = ycc_to_rgb;
}
