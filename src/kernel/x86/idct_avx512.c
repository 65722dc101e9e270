/* idct_avx512.c: JPEG's inverse DCT, four blocks at a time, one in each 128-bit lane.
 *
 * As idct_avx2.c, with VNNI's multiply and add in one instruction, and byte permutations across lanes at the end.
 */
#include "kernel/level.h"

#include <immintrin.h>

#include "base/compiler.h"

/* 32-bit sums of one half: the first four outputs, and the last four in reverse order. */
struct half {
    __m512i first[4], last[4];
};

static inline __m512i weights(int a, int b)
{
    return _mm512_set1_epi32((int)((unsigned)b << 16 | (uint16_t)a));
}

/* low = 8192 (in0 + in4) and high = 8192 (in0 - in4), with the rounding; the others are pairs of inputs. */
DR_INLINE struct half sums(__m512i low, __m512i high, __m512i in26, __m512i in71, __m512i in35)
{
    struct half h;
    const __m512i even[4] = { _mm512_dpwssd_epi32(low, in26, weights(10703, 4433)),
                              _mm512_dpwssd_epi32(high, in26, weights(4433, -10704)),
                              _mm512_dpwssd_epi32(high, in26, weights(-4433, 10704)),
                              _mm512_dpwssd_epi32(low, in26, weights(-10703, -4433)) };
    const __m512i both = _mm512_add_epi16(in71, in35);
    const __m512i common37 = _mm512_madd_epi16(both, weights(-6436, 9633));
    const __m512i common15 = _mm512_madd_epi16(both, weights(9633, 6437));
    const __m512i odd[4] = { _mm512_dpwssd_epi32(common15, in71, weights(-7373, 4926)),
                             _mm512_dpwssd_epi32(common37, in35, weights(4177, -20995)),
                             _mm512_dpwssd_epi32(common15, in35, weights(-20995, -4176)),
                             _mm512_dpwssd_epi32(common37, in71, weights(-4927, -7373)) };
    for (int i = 0; i < 4; i++) {
        h.first[i] = _mm512_add_epi32(even[i], odd[i]);
        h.last[i] = _mm512_sub_epi32(even[i], odd[i]);
    }
    return h;
}

/* Rows of inputs to rows.  The rounding, 1 << 10, is 8192 below in0 +- in4 where that is shifted to its place. */
DR_INLINE void pass_1(__m512i *out, const __m512i *in)
{
    const __m512i rounding = _mm512_set1_epi16(8192);
    const __m512i sum = _mm512_add_epi16(in[0], in[4]), difference = _mm512_sub_epi16(in[0], in[4]);
    const struct half left =
        sums(_mm512_srai_epi32(_mm512_unpacklo_epi16(rounding, sum), 3),
             _mm512_srai_epi32(_mm512_unpacklo_epi16(rounding, difference), 3), _mm512_unpacklo_epi16(in[2], in[6]),
             _mm512_unpacklo_epi16(in[7], in[1]), _mm512_unpacklo_epi16(in[3], in[5]));
    const struct half right =
        sums(_mm512_srai_epi32(_mm512_unpackhi_epi16(rounding, sum), 3),
             _mm512_srai_epi32(_mm512_unpackhi_epi16(rounding, difference), 3), _mm512_unpackhi_epi16(in[2], in[6]),
             _mm512_unpackhi_epi16(in[7], in[1]), _mm512_unpackhi_epi16(in[3], in[5]));
    for (int i = 0; i < 4; i++) {
        out[i] = _mm512_packs_epi32(_mm512_srai_epi32(left.first[i], 11), _mm512_srai_epi32(right.first[i], 11));
        out[7 - i] = _mm512_packs_epi32(_mm512_srai_epi32(left.last[i], 11), _mm512_srai_epi32(right.last[i], 11));
    }
}

/* Four rows to four registers of pairs of columns: 0 and 4, 2 and 6, 7 and 1, 3 and 5. */
DR_INLINE void turn(__m512i *pairs, const __m512i *rows)
{
    const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, 14, 15, 2, 3, 6, 7, 10, 11));
    const __m512i a = _mm512_shuffle_epi8(rows[0], order), b = _mm512_shuffle_epi8(rows[1], order);
    const __m512i c = _mm512_shuffle_epi8(rows[2], order), d = _mm512_shuffle_epi8(rows[3], order);
    const __m512i ab_left = _mm512_unpacklo_epi32(a, b), ab_right = _mm512_unpackhi_epi32(a, b);
    const __m512i cd_left = _mm512_unpacklo_epi32(c, d), cd_right = _mm512_unpackhi_epi32(c, d);
    pairs[0] = _mm512_unpacklo_epi64(ab_left, cd_left);
    pairs[1] = _mm512_unpackhi_epi64(ab_left, cd_left);
    pairs[2] = _mm512_unpacklo_epi64(ab_right, cd_right);
    pairs[3] = _mm512_unpackhi_epi64(ab_right, cd_right);
}

/* Columns of four rows. */
DR_INLINE struct half pass_2(const __m512i *rows)
{
    const __mmask32 upper = 0xaaaaaaaa;
    const __m512i rounding = _mm512_set1_epi32(1 << 17);
    __m512i pairs[4];
    turn(pairs, rows);
    const __m512i in0 = _mm512_slli_epi32(pairs[0], 16);
    const __m512i sum = _mm512_maskz_add_epi16(upper, in0, pairs[0]);
    const __m512i difference = _mm512_maskz_sub_epi16(upper, in0, pairs[0]);
    return sums(_mm512_add_epi32(_mm512_srai_epi32(sum, 3), rounding),
                _mm512_add_epi32(_mm512_srai_epi32(difference, 3), rounding), pairs[1], pairs[2], pairs[3]);
}

/* a >> 18 in the lower and b >> 18 in the upper word. */
static inline __m512i words(__m512i a, __m512i b)
{
    return _mm512_srai_epi16(_mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(a, 16), b), 2);
}

/* Four rows of bytes: out[0] has row 0 of the four blocks and then row 1, out[1] rows 2 and 3.  Before the permutation
 * the 16 bytes of a lane are columns 0, 1 of both rows, columns 2, 3, columns 4, 5, columns 6, 7. */
DR_INLINE void finish(__m512i *out, const struct half *h)
{
    const __m512i order =
        _mm512_set_epi64(0x3f3e3b3a37363332, 0x2f2e2b2a27262322, 0x1f1e1b1a17161312, 0x0f0e0b0a07060302,
                         0x3d3c393835343130, 0x2d2c292825242120, 0x1d1c191815141110, 0x0d0c090805040100);
    const __m512i centre = _mm512_set1_epi8((char)0x80);
    const __m512i left = _mm512_packs_epi16(words(h->first[0], h->first[1]), words(h->first[2], h->first[3]));
    const __m512i right = _mm512_packs_epi16(words(h->last[3], h->last[2]), words(h->last[1], h->last[0]));
    const __m512 l = _mm512_castsi512_ps(_mm512_xor_si512(left, centre));
    const __m512 r = _mm512_castsi512_ps(_mm512_xor_si512(right, centre));
    out[0] = _mm512_permutexvar_epi8(order, _mm512_castps_si512(_mm512_shuffle_ps(l, r, 0x88)));
    out[1] = _mm512_permutexvar_epi8(order, _mm512_castps_si512(_mm512_shuffle_ps(l, r, 0xdd)));
}

/* Two rows of two blocks, times their steps. */
DR_INLINE __m512i rows_of_two(const int16_t *a, const int16_t *b, const int16_t *quant)
{
    const __m512i steps = _mm512_broadcast_i64x4(_mm256_load_si256((const __m256i *)quant));
    const __m512i first = _mm512_castsi256_si512(_mm256_load_si256((const __m256i *)a));
    return _mm512_mullo_epi16(_mm512_inserti64x4(first, _mm256_load_si256((const __m256i *)b), 1), steps);
}

/* False if row 0 has values for which it matters that the reference treats blocks without other rows apart. */
DR_INLINE int transform(__m512i *out, const int16_t *const *coef, const int16_t *quant)
{
    __m512i in[8], rows[8];
    for (int y = 0; y < 8; y += 2) {
        const ptrdiff_t at = (ptrdiff_t)y * 8;
        const __m512i ab = rows_of_two(coef[0] + at, coef[1] + at, quant + at);
        const __m512i cd = rows_of_two(coef[2] + at, coef[3] + at, quant + at);
        in[y] = _mm512_shuffle_i64x2(ab, cd, 0x88);
        in[y + 1] = _mm512_shuffle_i64x2(ab, cd, 0xdd);
    }
    if (DR_UNLIKELY(_mm512_cmpneq_epi16_mask(_mm512_srai_epi16(_mm512_slli_epi16(in[0], 2), 2), in[0])))
        return 0;
    pass_1(rows, in);
    const struct half upper = pass_2(rows), lower = pass_2(rows + 4);
    finish(out, &upper);
    finish(out + 2, &lower);
    return 1;
}

/* Up to four blocks; in place of missing ones the last is done again and not stored. */
DR_INLINE void blocks(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n)
{
    const int16_t *const block[4] = { coef, coef + (n > 1 ? 64 : 0), coef + (n > 2 ? 128 : 0),
                                      coef + (n > 3 ? 192 : 0) };
    const __mmask8 wanted = (__mmask8)((1 << n) - 1);
    __m512i out[4];
    if (!transform(out, block, quant)) {
        dr__idct_8x8_c(dst, stride, coef, quant, n);
        return;
    }
    for (int i = 0; i < 4; i++) {
        _mm256_mask_storeu_epi64(dst + 2 * i * stride, wanted, _mm512_castsi512_si256(out[i]));
        _mm256_mask_storeu_epi64(dst + (2 * i + 1) * stride, wanted, _mm512_extracti64x4_epi64(out[i], 1));
    }
}

static void idct_8x8(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n)
{
    if (n <= 2) { /* there two lanes are faster than four */
        dr__idct_8x8_avx2(dst, stride, coef, quant, n);
        return;
    }
    for (; n >= 4; n -= 4, dst += 32, coef += 256)
        blocks(dst, stride, coef, quant, 4);
    if (n > 0)
        blocks(dst, stride, coef, quant, n);
}

void dr__idct_avx512(dr__kernels *k)
{
    k->idct_8x8 = idct_8x8;
}
