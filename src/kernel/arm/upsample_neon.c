/* upsample_neon.c: JPEG's chroma to twice the size, 16 samples at a time.
 *
 * Neighbours are loaded from one byte further left or right; even and odd outputs are woven together as they are
 * stored.  Checked under qemu-user, not timed on hardware.
 */
#include "kernel/level.h"

#include <arm_neon.h>
#include <string.h>

#include "base/compiler.h"

enum { STEP = 16 };

struct words {
    uint16x8_t a, b; /* samples 0-7, 8-15 */
};

/* 3 near + far. */
DR_INLINE struct words three_to_one(const uint8_t *near, const uint8_t *far)
{
    const uint8x16_t x = vld1q_u8(near), y = vld1q_u8(far), three = vdupq_n_u8(3);
    return (struct words){ vmlal_u8(vmovl_u8(vget_low_u8(y)), vget_low_u8(x), vget_low_u8(three)),
                           vmlal_high_u8(vmovl_high_u8(y), x, three) };
}

/* 3 here + beside + bias. */
DR_INLINE struct words weigh(struct words here, struct words beside, uint16x8_t bias)
{
    return (struct words){ vmlaq_n_u16(vaddq_u16(beside.a, bias), here.a, 3),
                           vmlaq_n_u16(vaddq_u16(beside.b, bias), here.b, 3) };
}

DR_INLINE uint8x16_t quarter(struct words w, uint16x8_t bias)
{
    return vshrn_high_n_u16(vshrn_n_u16(vaddq_u16(w.a, bias), 2), vaddq_u16(w.b, bias), 2);
}

DR_INLINE uint8x16_t sixteenth(struct words w)
{
    return vshrn_high_n_u16(vshrn_n_u16(w.a, 4), w.b, 4);
}

DR_INLINE void h2_16(uint8_t *dst, const uint8_t *src)
{
    const struct words even = three_to_one(src, src - 1), odd = three_to_one(src, src + 1);
    vst2q_u8(dst, ((uint8x16x2_t){ { quarter(even, vdupq_n_u16(1)), quarter(odd, vdupq_n_u16(2)) } }));
}

DR_INLINE void h2v2_16(uint8_t *dst, const uint8_t *near, const uint8_t *far)
{
    const struct words before = three_to_one(near - 1, far - 1), here = three_to_one(near, far);
    const struct words after = three_to_one(near + 1, far + 1);
    const uint8x16_t even = sixteenth(weigh(here, before, vdupq_n_u16(8)));
    const uint8x16_t odd = sixteenth(weigh(here, after, vdupq_n_u16(7)));
    vst2q_u8(dst, ((uint8x16x2_t){ { even, odd } }));
}

static void upsample_h2(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        h2_16(dst + 2 * i, src + i);
    if (i < n) {
        uint8_t rest[2 * STEP];
        h2_16(rest, src + i);
        memcpy(dst + 2 * i, rest, 2 * (n - i));
    }
}

static void upsample_h2v2(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        h2v2_16(dst + 2 * i, near + i, far + i);
    if (i < n) {
        uint8_t rest[2 * STEP];
        h2v2_16(rest, near + i, far + i);
        memcpy(dst + 2 * i, rest, 2 * (n - i));
    }
}

static void upsample_v2(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n, int bias)
{
    const uint16x8_t biases = vdupq_n_u16((uint16_t)bias);
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        vst1q_u8(dst + i, quarter(three_to_one(near + i, far + i), biases));
    if (i < n) {
        uint8_t rest[STEP];
        vst1q_u8(rest, quarter(three_to_one(near + i, far + i), biases));
        memcpy(dst + i, rest, n - i);
    }
}

void dr__upsample_neon(dr__kernels *k)
{
    k->upsample_h2 = upsample_h2;
    k->upsample_h2v2 = upsample_h2v2;
    k->upsample_v2 = upsample_v2;
}
