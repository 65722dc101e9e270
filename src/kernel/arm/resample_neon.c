/* resample_neon.c: both passes of the resampling in 32-bit lanes.
 *
 * Coefficients are used whole: one multiply-add of four 32-bit lanes does what two of split 16-bit halves would.
 * Horizontal: a register holds the channels of one output pixel, for 4 rows at a time, and a table lookup brings each
 * source pixel's bytes to their lanes.  Vertical: 16 neighbouring bytes at a time.  Checked under qemu-user, not timed
 * on hardware.
 */
#include "kernel/level.h"

#include <arm_neon.h>
#include <string.h>

#include "base/compiler.h"

enum { FRACTION = 22, HALF = 1 << (FRACTION - 1), ROWS = 4 };

/* clip8(sum >> FRACTION): the upper 16 bits first, then the rest of the shift with the clipping. */
static inline uint8x8_t finish(int32x4_t a, int32x4_t b)
{
    return vqshrun_n_s16(vshrn_high_n_s32(vshrn_n_s32(a, 16), b, 16), FRACTION - 16);
}

/* ---- horizontal ---- */

/* Indices of the bytes of pixel i, each the lowest byte of a 32-bit lane; 255 gives 0. */
DR_INLINE uint8x16_t pixel_order(int channels, int i)
{
    const uint32_t first = (uint32_t)(i * channels), none = 0xffffff00u;
    const uint32_t lanes[4] = { none | first, none | (first + 1), none | (first + 2),
                                channels == 4 ? none | (first + 3) : none | 0xff };
    return vreinterpretq_u8_u32(vld1q_u32(lanes));
}

static inline int32x4_t lanes_of(uint8x16_t bytes, uint8x16_t order)
{
    return vreinterpretq_s32_u8(vqtbl1q_u8(bytes, order));
}

/* Output pixel x of 4 rows. */
DR_INLINE void sum_pixel(int32x4_t sum[ROWS], const uint8_t *const src[ROWS], const dr__taps *t, int x, int channels)
{
    const uint8x16_t order[4] = { pixel_order(channels, 0), pixel_order(channels, 1), pixel_order(channels, 2),
                                  pixel_order(channels, 3) };
    const int32_t *coef = t->coef + (ptrdiff_t)x * t->stride;
    ptrdiff_t at = (ptrdiff_t)t->start[x] * channels;
    for (int y = 0; y < ROWS; y++)
        sum[y] = vdupq_n_s32(HALF);
    for (int left = t->size[x]; left > 0; left -= 4, coef += 4, at += 4 * channels) {
        const int32x4_t weights = vld1q_s32(coef);
        for (int y = 0; y < ROWS; y++) {
            const uint8x16_t bytes = vld1q_u8(src[y] + at);
            sum[y] = vmlaq_laneq_s32(sum[y], lanes_of(bytes, order[0]), weights, 0);
            sum[y] = vmlaq_laneq_s32(sum[y], lanes_of(bytes, order[1]), weights, 1);
            sum[y] = vmlaq_laneq_s32(sum[y], lanes_of(bytes, order[2]), weights, 2);
            sum[y] = vmlaq_laneq_s32(sum[y], lanes_of(bytes, order[3]), weights, 3);
        }
    }
}

DR_INLINE void resample_colour(uint8_t *const dst[ROWS], const uint8_t *const src[ROWS], const dr__taps *taps,
                               int channels)
{
    const dr__taps t = *taps; /* a copy of its own, since stores of bytes might change any other */
    for (int x = 0; x < t.n_out; x++) {
        int32x4_t sum[ROWS];
        uint8_t pixels[4 * ROWS];
        sum_pixel(sum, src, &t, x, channels);
        vst1q_u8(pixels, vcombine_u8(finish(sum[0], sum[1]), finish(sum[2], sum[3])));
        for (int y = 0; y < ROWS; y++)
            memcpy(dst[y] + (ptrdiff_t)x * channels, pixels + (ptrdiff_t)y * 4, (size_t)channels);
    }
}

/* Four taps of a grey row as 32-bit lanes. */
static inline int32x4_t load_grey(const uint8_t *p)
{
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vld1_u8(p)))));
}

/* One grey pixel of 4 rows. */
static inline uint8x8_t sum_grey(const uint8_t *const src[ROWS], const dr__taps *t, int x)
{
    const int32_t *coef = t->coef + (ptrdiff_t)x * t->stride;
    int32x4_t sum[ROWS] = { vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0) };
    for (ptrdiff_t j = 0; j < t->size[x]; j += 4) {
        for (int y = 0; y < ROWS; y++)
            sum[y] = vmlaq_s32(sum[y], load_grey(src[y] + t->start[x] + j), vld1q_s32(coef + j));
    }
    const int32x4_t rows = vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3]));
    const int32x4_t rounded = vaddq_s32(rows, vdupq_n_s32(HALF));
    return finish(rounded, rounded);
}

static void resample_grey(uint8_t *const dst[ROWS], const uint8_t *const src[ROWS], const dr__taps *t)
{
    for (int x = 0; x < t->n_out; x++) {
        const uint8x8_t rows = sum_grey(src, t, x);
        vst1_lane_u8(dst[0] + x, rows, 0);
        vst1_lane_u8(dst[1] + x, rows, 1);
        vst1_lane_u8(dst[2] + x, rows, 2);
        vst1_lane_u8(dst[3] + x, rows, 3);
    }
}

static void resample_h(uint8_t *const *dst, const uint8_t *const *src, int n_rows, int channels, const dr__taps *taps)
{
    const uint8_t *from[ROWS];
    uint8_t *to[ROWS];
    for (int y = 0; y < ROWS; y++) { /* rows that are missing repeat the last */
        from[y] = src[DR_MIN(y, n_rows - 1)];
        to[y] = dst[DR_MIN(y, n_rows - 1)];
    }
    if (channels == 1)
        resample_grey(to, from, taps);
    else if (channels == 3)
        resample_colour(to, from, taps, 3);
    else
        resample_colour(to, from, taps, 4);
}

/* ---- vertical ---- */

/* 16 bytes at `at`. */
static inline void sum_rows(uint8_t *dst, const uint8_t *const *rows, const int32_t *coef, int n, size_t at)
{
    int32x4_t sum[4] = { vdupq_n_s32(HALF), vdupq_n_s32(HALF), vdupq_n_s32(HALF), vdupq_n_s32(HALF) };
    for (int j = 0; j < n; j++) {
        const uint8x16_t bytes = vld1q_u8(rows[j] + at);
        const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
        sum[0] = vmlaq_n_s32(sum[0], vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), coef[j]);
        sum[1] = vmlaq_n_s32(sum[1], vreinterpretq_s32_u32(vmovl_high_u16(low)), coef[j]);
        sum[2] = vmlaq_n_s32(sum[2], vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))), coef[j]);
        sum[3] = vmlaq_n_s32(sum[3], vreinterpretq_s32_u32(vmovl_high_u16(high)), coef[j]);
    }
    vst1q_u8(dst + at, vcombine_u8(finish(sum[0], sum[1]), finish(sum[2], sum[3])));
}

/* The last 16 bytes overlap the ones before. */
static void resample_v(uint8_t *dst, const uint8_t *const *rows, const dr__taps *taps, size_t y, size_t bytes)
{
    const int n = taps->size[y];
    const int32_t *coef = taps->coef + y * (size_t)taps->stride;
    if (bytes < 16) {
        dr__resample_v_c(dst, rows, taps, y, bytes);
        return;
    }
    for (size_t at = 0; at + 16 <= bytes; at += 16)
        sum_rows(dst, rows, coef, n, at);
    if (bytes % 16)
        sum_rows(dst, rows, coef, n, bytes - 16);
}

void dr__resample_neon(dr__kernels *k)
{
    k->resample_h = resample_h;
    k->resample_v = resample_v;
}
