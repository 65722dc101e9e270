/* gray_neon.c: PIL's luma of RGB, 16 pixels at a time.  Checked under qemu-user, not timed on hardware. */
#include "kernel/level.h"

#include <arm_neon.h>

/* Four pixels; the narrowing that follows rounds with the reference's 0x8000. */
static inline uint32x4_t weigh(uint16x4_t r, uint16x4_t g, uint16x4_t b)
{
    return vmlal_n_u16(vmlal_n_u16(vmull_n_u16(r, 19595), g, 38470), b, 7471);
}

static inline uint8x8_t luma_8(uint8x8_t red, uint8x8_t green, uint8x8_t blue)
{
    const uint16x8_t r = vmovl_u8(red), g = vmovl_u8(green), b = vmovl_u8(blue);
    const uint32x4_t left = weigh(vget_low_u16(r), vget_low_u16(g), vget_low_u16(b));
    const uint32x4_t right = weigh(vget_high_u16(r), vget_high_u16(g), vget_high_u16(b));
    return vmovn_u16(vrshrn_high_n_u32(vrshrn_n_u32(left, 16), right, 16));
}

static void rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const uint8x16x3_t p = vld3q_u8(src + i * 3);
        const uint8x8_t left = luma_8(vget_low_u8(p.val[0]), vget_low_u8(p.val[1]), vget_low_u8(p.val[2]));
        const uint8x8_t right = luma_8(vget_high_u8(p.val[0]), vget_high_u8(p.val[1]), vget_high_u8(p.val[2]));
        vst1q_u8(dst + i, vcombine_u8(left, right));
    }
    for (; i < n; i++)
        dst[i] = (uint8_t)((src[i * 3] * 19595u + src[i * 3 + 1] * 38470u + src[i * 3 + 2] * 7471u + 0x8000u) >> 16);
}

void dr__gray_neon(dr__kernels *k)
{
    k->rgb_to_l = rgb_to_l;
}
