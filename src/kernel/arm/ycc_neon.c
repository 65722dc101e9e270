/* ycc_neon.c: YCbCr to interleaved RGB, 16 pixels at a time.
 *
 * Chroma less 128 has 8 bits, so vqrdmulhq_n_s16, which rounds (a * b) / 32768, gives red's and blue's parts exactly:
 * 1.402 as 1 + 13173 / 32768 (equal to the reference for all 256 values) and 1.772 as 1 + 25297 / 32768.  Green's two
 * parts are rounded together and need 32 bits.  Checked under qemu-user, not timed on hardware.
 */
#include "kernel/level.h"

#include <arm_neon.h>
#include <string.h>

#include "base/compiler.h"

enum { STEP = 16 };

struct pixels {
    uint8x8_t r, g, b;
};

/* Words of 8 pixels; chroma less 128. */
static inline uint8x8_t red(int16x8_t y, int16x8_t cr)
{
    return vqmovun_s16(vaddq_s16(vaddq_s16(y, cr), vqrdmulhq_n_s16(cr, 13173)));
}

static inline uint8x8_t blue(int16x8_t y, int16x8_t cb)
{
    return vqmovun_s16(vaddq_s16(vaddq_s16(y, cb), vqrdmulhq_n_s16(cb, 25297)));
}

static inline uint8x8_t green(int16x8_t y, int16x8_t cb, int16x8_t cr)
{
    const int32x4_t left = vmlal_n_s16(vmull_n_s16(vget_low_s16(cb), -11277), vget_low_s16(cr), -23401);
    const int32x4_t right = vmlal_high_n_s16(vmull_high_n_s16(cb, -11277), cr, -23401);
    return vqmovun_s16(vaddq_s16(y, vrshrn_high_n_s32(vrshrn_n_s32(left, 15), right, 15)));
}

DR_INLINE struct pixels convert_8(uint8x8_t luma, uint8x8_t blues, uint8x8_t reds)
{
    const uint8x8_t centre = vdup_n_u8(128);
    const int16x8_t y = vreinterpretq_s16_u16(vmovl_u8(luma));
    const int16x8_t cb = vreinterpretq_s16_u16(vsubl_u8(blues, centre));
    const int16x8_t cr = vreinterpretq_s16_u16(vsubl_u8(reds, centre));
    return (struct pixels){ red(y, cr), green(y, cb, cr), blue(y, cb) };
}

DR_INLINE void convert_16(uint8_t *dst, const uint8_t *y, const uint8_t *cb, const uint8_t *cr)
{
    const uint8x16_t luma = vld1q_u8(y), blues = vld1q_u8(cb), reds = vld1q_u8(cr);
    const struct pixels low = convert_8(vget_low_u8(luma), vget_low_u8(blues), vget_low_u8(reds));
    const struct pixels high = convert_8(vget_high_u8(luma), vget_high_u8(blues), vget_high_u8(reds));
    const uint8x16x3_t rgb = { { vcombine_u8(low.r, high.r), vcombine_u8(low.g, high.g), vcombine_u8(low.b, high.b) } };
    vst3q_u8(dst, rgb);
}

static void ycc_to_rgb(uint8_t *dst, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        convert_16(dst + 3 * i, y + i, cb + i, cr + i);
    if (i < n) {
        uint8_t rest[3 * STEP];
        convert_16(rest, y + i, cb + i, cr + i);
        memcpy(dst + 3 * i, rest, 3 * (n - i));
    }
}

void dr__ycc_neon(dr__kernels *k)
{
    k->ycc_to_rgb = ycc_to_rgb;
}
