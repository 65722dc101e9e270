/* adjust_tensor.c: the colour changes of adjust.h as torchvision's v2 computes them on tensors of bytes: in float32,
 * one tensor operation after the other, cut to whole numbers at the end.
 *
 * Each value depends on its pixel alone, and torch rounds each operation once, so that results are equal.  The mean
 * that the contrast takes is a sum of whole numbers, exact up to 2^24; the order in which torch adds up more of them
 * depends on the machine.
 */
#include <math.h>
#include <string.h>

#include "op/image/adjust.h"

static uint8_t cut(float v)
{
    return (uint8_t)(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
}

/* image.mul(factor).add(other, alpha=1 - factor), cut. */
static uint8_t blend(int v, float other, double factor)
{
    return cut(dr__fused((float)(1.0 - factor), other, (float)v * (float)factor));
}

static void blend_with_value(const dr_task *task, const dr_view *in, dr_view *out, float value, double factor)
{
    uint8_t table[256];
    for (int v = 0; v < 256; v++)
        table[v] = blend(v, value, factor);
    dr__tone_table(task, in, out, table);
}

void dr__tensor_brightness(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    blend_with_value(task, in, out, 0.0f, factor);
}

/* The whole part of torchvision's luminance. */
static uint8_t luminance(const uint8_t *rgb)
{
    return (uint8_t)dr__fused(0.114f, rgb[2], dr__fused(0.587f, rgb[1], 0.2989f * (float)rgb[0]));
}

void dr__tensor_contrast(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    int channels = (int)dr__channels(&in->desc);
    int64_t h = dr__height(&in->desc), w = dr__width(&in->desc);
    uint64_t sum = 0;
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *src = in->data + y * in->stride;
        for (int64_t x = 0; x < w; x++, src += channels)
            sum += channels == 1 ? src[0] : luminance(src);
    }
    blend_with_value(task, in, out, w && h ? (float)sum / (float)(w * h) : 0.0f, factor);
}

static void copy_unless_same(const dr_view *in, dr_view *out)
{
    if (out->data != in->data)
        dr__view_copy(out, in);
}

void dr__tensor_saturation(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    (void)task;
    if (dr__channels(&in->desc) == 1) {
        copy_unless_same(in, out);
        return;
    }
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        const uint8_t *src = in->data + y * in->stride;
        uint8_t *dst = out->data + y * out->stride;
        for (int64_t x = 0; x < dr__width(&in->desc); x++, src += 3, dst += 3) {
            float grey = luminance(src);
            for (int c = 0; c < 3; c++)
                dst[c] = blend(src[c], grey, factor);
        }
    }
}

void dr__tensor_grey(const dr_task *task, const dr_view *in, dr_view *out)
{
    int from = (int)dr__channels(&in->desc), to = (int)dr__channels(&out->desc);
    (void)task;
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        const uint8_t *src = in->data + y * in->stride;
        uint8_t *dst = out->data + y * out->stride;
        for (int64_t x = 0; x < dr__width(&in->desc); x++, src += from, dst += to)
            memset(dst, from == 1 ? src[0] : luminance(src), (size_t)to);
    }
}

void dr__tensor_sharpness(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    int64_t h = dr__height(&in->desc);
    size_t row = dr__row_bytes(&in->desc), pixel = (size_t)dr__channels(&in->desc);
    float part = (float)(1.0 - factor);
    dr__view_copy(out, in);
    if (h < 3 || row < 3 * pixel)
        return;
    for (int64_t y = 1; y < h - 1; y++) {
        const uint8_t *src = in->data + y * in->stride;
        uint8_t *dst = out->data + y * out->stride, *smooth = task->scratch;
        dr__smooth_row(smooth, src - in->stride, src, src + in->stride, row, pixel);
        for (size_t i = pixel; i + pixel < row; i++)
            dst[i] = cut(dr__fused(part, (float)(smooth[i] - src[i]), src[i]));
    }
}

static void build_autocontrast(const uint32_t *hist, uint8_t *table)
{
    int lo = 0, hi = 255;
    while (lo < 255 && !hist[lo])
        lo++;
    while (hi > 0 && !hist[hi])
        hi--;
    float least = hi > lo ? (float)lo : 0.0f;
    float unit = hi > lo ? (float)(hi - lo) * (float)(1.0 / 255.0) : 1.0f;
    for (int v = 0; v < 256; v++)
        table[v] = cut(((float)v - least) / unit);
}

void dr__tensor_autocontrast(const dr_task *task, const dr_view *in, dr_view *out)
{
    dr__tone_by_histogram(task, in, out, build_autocontrast);
}

/* ---- hue ---- */

/* Hue in turns, 0 to 1. */
static float hue_of(float r, float g, float b, float most, float range)
{
    float rc = (most - r) / range, gc = (most - g) / range, bc = (most - b) / range;
    float sixths = most == r ? bc - gc : most == g ? rc + 2.0f - bc : gc + 4.0f - rc;
    float turn = sixths * (float)(1.0 / 6.0) + 1.0f; /* 5/6 to 11/6 */
    return turn >= 1.0f ? turn - 1.0f : turn;
}

static float within_one(float v)
{
    return v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
}

static void turn_pixel(uint8_t *dst, const uint8_t *src, float shift)
{
    /* Which of v, p, q, t stands in red, green and blue, for each sixth of the circle. */
    static const uint8_t place[6][3] = { { 0, 3, 1 }, { 2, 0, 1 }, { 1, 0, 3 }, { 1, 2, 0 }, { 3, 1, 0 }, { 0, 1, 2 } };
    const float unit = (float)(1.0 / 255.0);
    float r = (float)src[0] * unit, g = (float)src[1] * unit, b = (float)src[2] * unit;
    float most = DR_MAX(r, DR_MAX(g, b)), least = DR_MIN(r, DR_MIN(g, b));
    bool grey = most == least;
    float range = most - least, s = range / (grey ? 1.0f : most);
    float h = hue_of(r, g, b, most, grey ? 1.0f : range) + shift;
    h = h >= 1.0f ? h - 1.0f : h;
    h = h < 0.0f ? h + 1.0f : h;
    float sixths = h * 6.0f, sixth = floorf(sixths), part = s * (sixths - sixth), rest = 1.0f - s; /* floorf is exact */
    float value[4] = { most, within_one(rest * most), within_one((1.0f - part) * most),
                       within_one((part + rest) * most) };
    const uint8_t *from = place[(int)sixth % 6];
    for (int c = 0; c < 3; c++)
        dst[c] = (uint8_t)(value[from[c]] * 255.999f);
}

void dr__tensor_hue(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    (void)task;
    if (dr__channels(&in->desc) == 1) {
        copy_unless_same(in, out);
        return;
    }
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        const uint8_t *src = in->data + y * in->stride;
        uint8_t *dst = out->data + y * out->stride;
        for (int64_t x = 0; x < dr__width(&in->desc); x++, src += 3, dst += 3)
            turn_pixel(dst, src, (float)factor);
    }
}
