/* check_pixels.c: flips, tables, blending, luma. */
#include "checkkernel.h"

CHECK_KERNEL(hflip_row)
{
    for (int i = 0; i < 400; i++) {
        const size_t w = rnd_size(520), pixel = 1 + rnd_below(12);
        const struct guarded src = guarded_random(w * pixel);
        const struct guarded want = guarded_blank(w * pixel), got = guarded_blank(w * pixel);
        ref->hflip_row(want.p, src.p, w, pixel);
        simd->hflip_row(got.p, src.p, w, pixel);
        expect_same(&got, &want, "w=%zu pixel=%zu", w, pixel);
    }
}

/* Planes lie `plane` elements apart with gaps, which must stay as they are. */
#define CHECK_PLANAR(name, type, table)                                                                                \
    CHECK_KERNEL(name)                                                                                                 \
    {                                                                                                                  \
        for (int i = 0; i < 600; i++) {                                                                                \
            const size_t w = rnd_size(300), c = 1 + rnd_below(4), plane = w + rnd_below(9);                            \
            const int mirror = (int)rnd_below(2);                                                                      \
            const struct guarded src = guarded_random(w * c), lut = guarded_random(sizeof(table));                     \
            const struct guarded want = guarded_blank(c * plane * sizeof(type));                                       \
            const struct guarded got = guarded_blank(c * plane * sizeof(type));                                        \
            table##_prepare((table *)lut.p);                                                                           \
            ref->name((type *)want.p, (ptrdiff_t)plane, src.p, w, (int)c, mirror, (const table *)lut.p);               \
            simd->name((type *)got.p, (ptrdiff_t)plane, src.p, w, (int)c, mirror, (const table *)lut.p);               \
            expect_same(&got, &want, "w=%zu channels=%zu plane=%zu mirror=%d", w, c, plane, mirror);                   \
        }                                                                                                              \
    }

#define CHECK_PACKED(name, type)                                                                                       \
    CHECK_KERNEL(name)                                                                                                 \
    {                                                                                                                  \
        for (int i = 0; i < 600; i++) {                                                                                \
            const size_t w = rnd_size(300), c = 1 + rnd_below(4);                                                      \
            const int mirror = (int)rnd_below(2);                                                                      \
            const struct guarded src = guarded_random(w * c), lut = guarded_random(c * 256 * sizeof(type));            \
            const struct guarded want = guarded_blank(c * w * sizeof(type));                                           \
            const struct guarded got = guarded_blank(c * w * sizeof(type));                                            \
            ref->name((type *)want.p, src.p, w, (int)c, mirror, (const type *)lut.p);                                  \
            simd->name((type *)got.p, src.p, w, (int)c, mirror, (const type *)lut.p);                                  \
            expect_same(&got, &want, "w=%zu channels=%zu mirror=%d", w, c, mirror);                                    \
        }                                                                                                              \
    }

CHECK_PLANAR(lut_planar_f32, float, dr__lut_f32)
CHECK_PLANAR(lut_planar_u16, uint16_t, dr__lut_u16)
CHECK_PACKED(lut_packed_f32, float)
CHECK_PACKED(lut_packed_u16, uint16_t)

CHECK_KERNEL(lut_planar_u8)
{
    for (int i = 0; i < 600; i++) {
        const size_t w = rnd_size(300), c = 1 + rnd_below(4), plane = w + rnd_below(9);
        const int mirror = (int)rnd_below(2), with_lut = (int)rnd_below(2);
        const struct guarded src = guarded_random(w * c), table = guarded_random(c * 256);
        const struct guarded want = guarded_blank(c * plane), got = guarded_blank(c * plane);
        const uint8_t *lut = with_lut ? table.p : NULL;
        ref->lut_planar_u8(want.p, (ptrdiff_t)plane, src.p, w, (int)c, mirror, lut);
        simd->lut_planar_u8(got.p, (ptrdiff_t)plane, src.p, w, (int)c, mirror, lut);
        expect_same(&got, &want, "w=%zu channels=%zu plane=%zu mirror=%d lut=%d", w, c, plane, mirror, with_lut);
    }
}

CHECK_KERNEL(lut_u8)
{
    for (int i = 0; i < 400; i++) {
        const size_t n = rnd_size(1000);
        const struct guarded src = guarded_random(n), lut = guarded_random(256);
        const struct guarded want = guarded_blank(n), got = guarded_blank(n);
        ref->lut_u8(want.p, src.p, n, lut.p);
        simd->lut_u8(got.p, src.p, n, lut.p);
        expect_same(&got, &want, "n=%zu", n);
    }
}

CHECK_KERNEL(blend_u8)
{
    for (int i = 0; i < 2000; i++) {
        const size_t n = rnd_size(600);
        const float f = i % 5 == 0 ? (float)rnd_below(4) - 1 : ((float)rnd_below(1 << 20) / (1 << 18)) - 1;
        const struct guarded a = guarded_random(n), b = guarded_random(n);
        const struct guarded want = guarded_blank(n), got = guarded_blank(n);
        ref->blend_u8(want.p, a.p, b.p, n, f);
        simd->blend_u8(got.p, a.p, b.p, n, f);
        expect_same(&got, &want, "n=%zu f=%.9g", n, (double)f);
    }
}

CHECK_KERNEL(rgb_to_l)
{
    for (int i = 0; i < 1000; i++) {
        const size_t n = rnd_size(600);
        const struct guarded src = guarded_random(n * 3);
        const struct guarded want = guarded_blank(n), got = guarded_blank(n);
        ref->rgb_to_l(want.p, src.p, n);
        simd->rgb_to_l(got.p, src.p, n);
        expect_same(&got, &want, "n=%zu", n);
    }
}
