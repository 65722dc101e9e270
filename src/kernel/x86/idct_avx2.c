/* idct_avx2.c: JPEG's inverse DCT, two blocks at a time, one in each 128-bit lane.
 *
 * Pass 1 has a row of eight 16-bit values in each lane; it works on its left and right half in turn, as pairs of rows
 * that _mm256_madd_epi16 weighs and adds in 32 bits.  Between the passes values are turned so that pass 2 has the pairs
 * of columns that it weighs next to each other, for the upper and the lower four rows.  See idct.c for the arithmetic.
 */
#include "kernel/level.h"

#include <immintrin.h>

#include "base/compiler.h"

/* 32-bit sums of one half: the first four outputs, and the last four in reverse order. */
struct half {
    __m256i first[4], last[4];
};

static inline __m256i weights(int a, int b)
{
    return _mm256_set1_epi32((int)((unsigned)b << 16 | (uint16_t)a));
}

/* low = 8192 (in0 + in4) and high = 8192 (in0 - in4), with the rounding; the others are pairs of inputs. */
DR_INLINE struct half sums(__m256i low, __m256i high, __m256i in26, __m256i in71, __m256i in35)
{
    struct half h;
    const __m256i turned_low = _mm256_madd_epi16(in26, weights(10703, 4433));
    const __m256i turned_high = _mm256_madd_epi16(in26, weights(4433, -10704));
    const __m256i even[4] = { _mm256_add_epi32(low, turned_low), _mm256_add_epi32(high, turned_high),
                              _mm256_sub_epi32(high, turned_high), _mm256_sub_epi32(low, turned_low) };
    const __m256i both = _mm256_add_epi16(in71, in35);
    const __m256i common37 = _mm256_madd_epi16(both, weights(-6436, 9633));
    const __m256i common15 = _mm256_madd_epi16(both, weights(9633, 6437));
    const __m256i odd[4] = { _mm256_add_epi32(_mm256_madd_epi16(in71, weights(-7373, 4926)), common15),
                             _mm256_add_epi32(_mm256_madd_epi16(in35, weights(4177, -20995)), common37),
                             _mm256_add_epi32(_mm256_madd_epi16(in35, weights(-20995, -4176)), common15),
                             _mm256_add_epi32(_mm256_madd_epi16(in71, weights(-4927, -7373)), common37) };
    for (int i = 0; i < 4; i++) {
        h.first[i] = _mm256_add_epi32(even[i], odd[i]);
        h.last[i] = _mm256_sub_epi32(even[i], odd[i]);
    }
    return h;
}

/* Rows of inputs to rows.  The rounding, 1 << 10, is 8192 below in0 +- in4 where that is shifted to its place. */
DR_INLINE void pass_1(__m256i *out, const __m256i *in)
{
    const __m256i rounding = _mm256_set1_epi16(8192);
    const __m256i sum = _mm256_add_epi16(in[0], in[4]), difference = _mm256_sub_epi16(in[0], in[4]);
    const struct half left =
        sums(_mm256_srai_epi32(_mm256_unpacklo_epi16(rounding, sum), 3),
             _mm256_srai_epi32(_mm256_unpacklo_epi16(rounding, difference), 3), _mm256_unpacklo_epi16(in[2], in[6]),
             _mm256_unpacklo_epi16(in[7], in[1]), _mm256_unpacklo_epi16(in[3], in[5]));
    const struct half right =
        sums(_mm256_srai_epi32(_mm256_unpackhi_epi16(rounding, sum), 3),
             _mm256_srai_epi32(_mm256_unpackhi_epi16(rounding, difference), 3), _mm256_unpackhi_epi16(in[2], in[6]),
             _mm256_unpackhi_epi16(in[7], in[1]), _mm256_unpackhi_epi16(in[3], in[5]));
    for (int i = 0; i < 4; i++) {
        out[i] = _mm256_packs_epi32(_mm256_srai_epi32(left.first[i], 11), _mm256_srai_epi32(right.first[i], 11));
        out[7 - i] = _mm256_packs_epi32(_mm256_srai_epi32(left.last[i], 11), _mm256_srai_epi32(right.last[i], 11));
    }
}

/* Four rows to four registers of pairs of columns: 0 and 4, 2 and 6, 7 and 1, 3 and 5. */
DR_INLINE void turn(__m256i *pairs, const __m256i *rows)
{
    const __m256i order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, 14, 15, 2, 3, 6, 7, 10, 11));
    const __m256i a = _mm256_shuffle_epi8(rows[0], order), b = _mm256_shuffle_epi8(rows[1], order);
    const __m256i c = _mm256_shuffle_epi8(rows[2], order), d = _mm256_shuffle_epi8(rows[3], order);
    const __m256i ab_left = _mm256_unpacklo_epi32(a, b), ab_right = _mm256_unpackhi_epi32(a, b);
    const __m256i cd_left = _mm256_unpacklo_epi32(c, d), cd_right = _mm256_unpackhi_epi32(c, d);
    pairs[0] = _mm256_unpacklo_epi64(ab_left, cd_left);
    pairs[1] = _mm256_unpackhi_epi64(ab_left, cd_left);
    pairs[2] = _mm256_unpacklo_epi64(ab_right, cd_right);
    pairs[3] = _mm256_unpackhi_epi64(ab_right, cd_right);
}

/* Columns of four rows. */
DR_INLINE struct half pass_2(const __m256i *rows)
{
    const __m256i rounding = _mm256_set1_epi32(1 << 17), zero = _mm256_setzero_si256();
    __m256i pairs[4];
    turn(pairs, rows);
    const __m256i in0 = _mm256_slli_epi32(pairs[0], 16);
    const __m256i sum = _mm256_blend_epi16(_mm256_add_epi16(in0, pairs[0]), zero, 0x55);
    const __m256i difference = _mm256_blend_epi16(_mm256_sub_epi16(in0, pairs[0]), zero, 0x55);
    return sums(_mm256_add_epi32(_mm256_srai_epi32(sum, 3), rounding),
                _mm256_add_epi32(_mm256_srai_epi32(difference, 3), rounding), pairs[1], pairs[2], pairs[3]);
}

/* a >> 18 in the lower and b >> 18 in the upper word. */
static inline __m256i words(__m256i a, __m256i b)
{
    return _mm256_srai_epi16(_mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa), 2);
}

/* Four rows of bytes: each lane of out[0] has rows 0 and 1 of a block, of out[1] rows 2 and 3.  Before they are ordered
 * the 16 bytes of a lane are columns 0, 1 of both rows, columns 2, 3, columns 4, 5, columns 6, 7. */
DR_INLINE void finish(__m256i *out, const struct half *h)
{
    const __m256i order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    const __m256i centre = _mm256_set1_epi8((char)0x80);
    const __m256i left = _mm256_packs_epi16(words(h->first[0], h->first[1]), words(h->first[2], h->first[3]));
    const __m256i right = _mm256_packs_epi16(words(h->last[3], h->last[2]), words(h->last[1], h->last[0]));
    const __m256 l = _mm256_castsi256_ps(_mm256_xor_si256(left, centre));
    const __m256 r = _mm256_castsi256_ps(_mm256_xor_si256(right, centre));
    out[0] = _mm256_shuffle_epi8(_mm256_castps_si256(_mm256_shuffle_ps(l, r, 0x88)), order);
    out[1] = _mm256_shuffle_epi8(_mm256_castps_si256(_mm256_shuffle_ps(l, r, 0xdd)), order);
}

/* False if row 0 has values for which it matters that the reference treats blocks without other rows apart. */
DR_INLINE int transform(__m256i *out, const int16_t *a, const int16_t *b, const int16_t *quant)
{
    __m256i in[8], rows[8];
    for (int y = 0; y < 8; y++) {
        const __m256i step = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(quant + y * 8)));
        const __m256i row = _mm256_castsi128_si256(_mm_load_si128((const __m128i *)(a + y * 8)));
        in[y] = _mm256_mullo_epi16(step, _mm256_inserti128_si256(row, _mm_load_si128((const __m128i *)(b + y * 8)), 1));
    }
    const __m256i scaled_back = _mm256_srai_epi16(_mm256_slli_epi16(in[0], 2), 2);
    if (DR_UNLIKELY(_mm256_movemask_epi8(_mm256_cmpeq_epi16(scaled_back, in[0])) != -1))
        return 0;
    pass_1(rows, in);
    const struct half upper = pass_2(rows), lower = pass_2(rows + 4);
    finish(out, &upper);
    finish(out + 2, &lower);
    return 1;
}

void dr__idct_8x8_avx2(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n)
{
    __m256i out[4];
    for (; n >= 2; n -= 2, dst += 16, coef += 128) {
        if (!transform(out, coef, coef + 64, quant)) {
            dr__idct_8x8_c(dst, stride, coef, quant, 2);
            continue;
        }
        for (int i = 0; i < 4; i++) {
            const __m256i rows = _mm256_permute4x64_epi64(out[i], 0xd8);
            _mm_storeu_si128((__m128i *)(dst + 2 * i * stride), _mm256_castsi256_si128(rows));
            _mm_storeu_si128((__m128i *)(dst + (2 * i + 1) * stride), _mm256_extracti128_si256(rows, 1));
        }
    }
    if (n == 0)
        return;
    if (!transform(out, coef, coef, quant)) {
        dr__idct_8x8_c(dst, stride, coef, quant, 1);
        return;
    }
    for (int i = 0; i < 4; i++) {
        const __m128i rows = _mm256_castsi256_si128(out[i]);
        _mm_storel_epi64((__m128i *)(dst + 2 * i * stride), rows);
        _mm_storel_epi64((__m128i *)(dst + (2 * i + 1) * stride), _mm_unpackhi_epi64(rows, rows));
    }
}

void dr__idct_avx2(dr__kernels *k)
{
    k->idct_8x8 = dr__idct_8x8_avx2;
}
