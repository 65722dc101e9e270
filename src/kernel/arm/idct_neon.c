/* idct_neon.c: JPEG's inverse DCT, one block at a time.
 *
 * A register holds a row of eight 16-bit values; both passes work on rows, first the left and then the right half in
 * 32 bits, and rows are turned to columns between them and after them.  See idct.c for the arithmetic.  Checked under
 * qemu-user, not timed on hardware.
 */
#include "kernel/level.h"

#include <arm_neon.h>

#include "base/compiler.h"

/* Weights by lane, in two registers for vmull_lane. */
static const int16_t even_weights[4] = { 10703, 4433, -10704, 8192 };
static const int16_t common_weights[4] = { -6436, 9633, 6437, 0 };
static const int16_t odd_weights[8] = { -7373, 4926, -20995, 4177, -4176, -4927, 0, 0 };

/* 32-bit sums of one half: the first four outputs, and the last four in reverse order. */
struct half {
    int32x4_t first[4], last[4];
};

/* sum = in0 + in4 and difference = in0 - in4, wrapped to 16 bits; in[0], in[4] are not read. */
DR_INLINE struct half sums(int16x4_t sum, int16x4_t difference, const int16x4_t *in)
{
    struct half h;
    const int16x4_t we = vld1_s16(even_weights), wc = vld1_s16(common_weights);
    const int16x8_t wo = vld1q_s16(odd_weights);
    const int32x4_t low = vshll_n_s16(sum, 13), high = vshll_n_s16(difference, 13);
    const int32x4_t turned_low = vmlal_lane_s16(vmull_lane_s16(in[2], we, 0), in[6], we, 1);
    const int32x4_t turned_high = vmlal_lane_s16(vmull_lane_s16(in[2], we, 1), in[6], we, 2);
    const int32x4_t even[4] = { vaddq_s32(low, turned_low), vaddq_s32(high, turned_high), vsubq_s32(high, turned_high),
                                vsubq_s32(low, turned_low) };
    const int16x4_t sum37 = vadd_s16(in[7], in[3]), sum15 = vadd_s16(in[5], in[1]);
    const int32x4_t common37 = vmlal_lane_s16(vmull_lane_s16(sum37, wc, 0), sum15, wc, 1);
    const int32x4_t common15 = vmlal_lane_s16(vmull_lane_s16(sum37, wc, 1), sum15, wc, 2);
    const int32x4_t odd[4] = { vmlal_laneq_s16(vmlal_laneq_s16(common15, in[7], wo, 0), in[1], wo, 1),
                               vmlal_laneq_s16(vmlal_laneq_s16(common37, in[5], wo, 2), in[3], wo, 3),
                               vmlal_laneq_s16(vmlal_laneq_s16(common15, in[5], wo, 4), in[3], wo, 2),
                               vmlal_laneq_s16(vmlal_laneq_s16(common37, in[7], wo, 5), in[1], wo, 0) };
    for (int i = 0; i < 4; i++) {
        h.first[i] = vaddq_s32(even[i], odd[i]);
        h.last[i] = vsubq_s32(even[i], odd[i]);
    }
    return h;
}

/* The two halves of eight rows. */
DR_INLINE void transform(struct half *left, struct half *right, const int16x8_t *in)
{
    const int16x8_t sum = vaddq_s16(in[0], in[4]), difference = vsubq_s16(in[0], in[4]);
    int16x4_t lower[8], upper[8];
    for (int i = 0; i < 8; i++) {
        lower[i] = vget_low_s16(in[i]);
        upper[i] = vget_high_s16(in[i]);
    }
    *left = sums(vget_low_s16(sum), vget_low_s16(difference), lower);
    *right = sums(vget_high_s16(sum), vget_high_s16(difference), upper);
}

/* Rounds, shifts by 11 and clips to 16 bits in one instruction. */
DR_INLINE void pass_1(int16x8_t *out, const int16x8_t *in)
{
    struct half left, right;
    transform(&left, &right, in);
    for (int i = 0; i < 4; i++) {
        out[i] = vqrshrn_high_n_s32(vqrshrn_n_s32(left.first[i], 11), right.first[i], 11);
        out[7 - i] = vqrshrn_high_n_s32(vqrshrn_n_s32(left.last[i], 11), right.last[i], 11);
    }
}

/* (v + (1 << 17)) >> 18 as 16 bits, and then clipped to 8: the upper 16 bits of a sum hold all of it. */
static inline int8x8_t narrow(int32x4_t left, int32x4_t right)
{
    const int32x4_t half = vdupq_n_s32(1 << 17);
    return vqshrn_n_s16(vaddhn_high_s32(vaddhn_s32(left, half), right, half), 2);
}

DR_INLINE void pass_2(uint8x8_t *out, const int16x8_t *in)
{
    const uint8x8_t centre = vdup_n_u8(128);
    struct half left, right;
    transform(&left, &right, in);
    for (int i = 0; i < 4; i++) {
        out[i] = veor_u8(vreinterpret_u8_s8(narrow(left.first[i], right.first[i])), centre);
        out[7 - i] = veor_u8(vreinterpret_u8_s8(narrow(left.last[i], right.last[i])), centre);
    }
}

/* Rows to columns: pairs of rows change places of 16 bits, then of 32, then of 64. */
DR_INLINE void turn_words(int16x8_t *m)
{
    int32x4_t a[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = vreinterpretq_s32_s16(vtrn1q_s16(m[i], m[i + 1]));
        a[i + 1] = vreinterpretq_s32_s16(vtrn2q_s16(m[i], m[i + 1]));
    }
    int64x2_t b[8];
    for (int i = 0; i < 8; i += 4) {
        for (int j = i; j < i + 2; j++) {
            b[j] = vreinterpretq_s64_s32(vtrn1q_s32(a[j], a[j + 2]));
            b[j + 2] = vreinterpretq_s64_s32(vtrn2q_s32(a[j], a[j + 2]));
        }
    }
    for (int i = 0; i < 4; i++) {
        m[i] = vreinterpretq_s16_s64(vtrn1q_s64(b[i], b[i + 4]));
        m[i + 4] = vreinterpretq_s16_s64(vtrn2q_s64(b[i], b[i + 4]));
    }
}

/* Columns to rows: the same with 8, 16 and 32 bits. */
DR_INLINE void turn_bytes(uint8x8_t *m)
{
    uint16x4_t a[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = vreinterpret_u16_u8(vtrn1_u8(m[i], m[i + 1]));
        a[i + 1] = vreinterpret_u16_u8(vtrn2_u8(m[i], m[i + 1]));
    }
    uint32x2_t b[8];
    for (int i = 0; i < 8; i += 4) {
        for (int j = i; j < i + 2; j++) {
            b[j] = vreinterpret_u32_u16(vtrn1_u16(a[j], a[j + 2]));
            b[j + 2] = vreinterpret_u32_u16(vtrn2_u16(a[j], a[j + 2]));
        }
    }
    for (int i = 0; i < 4; i++) {
        m[i] = vreinterpret_u8_u32(vtrn1_u32(b[i], b[i + 4]));
        m[i + 4] = vreinterpret_u8_u32(vtrn2_u32(b[i], b[i + 4]));
    }
}

/* False if row 0 has values for which it matters that the reference treats blocks without other rows apart. */
static inline int is_plain(int16x8_t row_0)
{
    const int16x8_t scaled_back = vshrq_n_s16(vshlq_n_s16(row_0, 2), 2);
    return vminvq_u16(vceqq_s16(scaled_back, row_0)) != 0;
}

static void idct_8x8(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n)
{
    for (; n > 0; n--, dst += 8, coef += 64) {
        int16x8_t in[8], half_done[8];
        uint8x8_t out[8];
        for (int y = 0; y < 8; y++)
            in[y] = vmulq_s16(vld1q_s16(coef + y * 8), vld1q_s16(quant + y * 8));
        if (DR_UNLIKELY(!is_plain(in[0]))) {
            dr__idct_8x8_c(dst, stride, coef, quant, 1);
            continue;
        }
        pass_1(half_done, in);
        turn_words(half_done);
        pass_2(out, half_done);
        turn_bytes(out);
        for (int y = 0; y < 8; y++)
            vst1_u8(dst + y * stride, out[y]);
    }
}

void dr__idct_neon(dr__kernels *k)
{
    k->idct_8x8 = idct_8x8;
}
