/* lut_neon.c: 8-bit pixels through tables of bytes, 16 at a time.
 *
 * A table of 256 bytes is four lookups of 64; an index out of a lookup's range leaves the result of the others.  Planes
 * come apart as they are loaded.  Tables of wider values stay in C, whose one load per value no instruction of NEON
 * avoids.  Checked under qemu-user, not timed on hardware.
 */
#include "kernel/level.h"

#include <arm_neon.h>

#include "base/compiler.h"

struct table {
    uint8x16x4_t part[4];
};

static inline struct table load_table(const uint8_t *lut)
{
    struct table t;
    for (int i = 0; i < 4; i++)
        t.part[i] = vld1q_u8_x4(lut + (ptrdiff_t)i * 64);
    return t;
}

static inline uint8x16_t look_up(const struct table *t, uint8x16_t index)
{
    const uint8x16_t quarter = vdupq_n_u8(64);
    uint8x16_t v = vqtbl4q_u8(t->part[0], index);
    for (int i = 1; i < 4; i++) {
        index = vsubq_u8(index, quarter);
        v = vqtbx4q_u8(v, t->part[i], index);
    }
    return v;
}

static void lut_u8(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *lut)
{
    const struct table t = load_table(lut);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vst1q_u8(dst + i, look_up(&t, vld1q_u8(src + i)));
    for (; i < n; i++)
        dst[i] = lut[src[i]];
}

/* Channel k of 16 pixels. */
DR_INLINE uint8x16_t load_channel(const uint8_t *src, int channels, int k)
{
    switch (channels) {
    case 1:
        return vld1q_u8(src);
    case 2:
        return vld2q_u8(src).val[k];
    case 3:
        return vld3q_u8(src).val[k];
    default:
        return vld4q_u8(src).val[k];
    }
}

static inline uint8x16_t reversed(uint8x16_t v)
{
    const uint8x16_t halves = vrev64q_u8(v);
    return vextq_u8(halves, halves, 8);
}

/* One plane.  Of a table one channel at a time fits the registers, so that pixels are loaded once for each. */
DR_INLINE void plane_u8(uint8_t *dst, const uint8_t *src, size_t w, int channels, int k, int mirror, const uint8_t *lut)
{
    const size_t c = (size_t)channels;
    const struct table t = lut ? load_table(lut) : (struct table){ 0 };
    size_t x = 0;
    for (; x + 16 <= w; x += 16) {
        const uint8x16_t v = load_channel(src + (mirror ? w - 16 - x : x) * c, channels, k);
        const uint8x16_t ordered = mirror ? reversed(v) : v;
        vst1q_u8(dst + x, lut ? look_up(&t, ordered) : ordered);
    }
    for (; x < w; x++) {
        const uint8_t v = src[(mirror ? w - 1 - x : x) * c + (size_t)k];
        dst[x] = lut ? lut[v] : v;
    }
}

DR_INLINE void planes_u8(uint8_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                         const uint8_t *lut)
{
    for (int k = 0; k < channels; k++)
        plane_u8(dst + k * plane, src, w, channels, k, mirror, lut ? lut + (ptrdiff_t)k * 256 : NULL);
}

static void lut_planar_u8(uint8_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                          const uint8_t *lut)
{
    switch (channels) {
    case 1:
        planes_u8(dst, plane, src, w, 1, mirror, lut);
        break;
    case 2:
        planes_u8(dst, plane, src, w, 2, mirror, lut);
        break;
    case 3:
        planes_u8(dst, plane, src, w, 3, mirror, lut);
        break;
    default:
        planes_u8(dst, plane, src, w, 4, mirror, lut);
        break;
    }
}

void dr__lut_neon(dr__kernels *k)
{
    k->lut_planar_u8 = lut_planar_u8;
    k->lut_u8 = lut_u8;
}
