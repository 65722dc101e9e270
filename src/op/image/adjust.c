/* adjust.c: brightness, contrast, saturation and sharpness as Pillow's ImageEnhance does them: a blend of the image
 * with a degenerate of itself, out = trunc(clip(d + f * (v - d))) in float.
 *
 * Where the degenerate is one value (black, mean grey) the blend is a table of 256 values.
 */
#include "op/image/adjust.h"

#include <string.h>

enum { SCRATCH_ROWS = 2 };

static size_t align64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

size_t dr__adjust_scratch(const dr_desc *in)
{
    return SCRATCH_ROWS * align64(dr__row_bytes(in));
}

/* The i-th row of the scratch. */
static uint8_t *scratch_row(const dr_task *task, const dr_desc *d, int i)
{
    return task->scratch + (size_t)i * align64(dr__row_bytes(d));
}

dr_status dr__want_colour(const dr_desc *in, unsigned channels, const char *op, dr_error *err)
{
    DR_TRY(dr__want_image(in, in->kind == DR_KIND_MASK ? ~0u : 1u << DR_U8, op, err));
    int64_t c = dr__channels(in);
    if (in->kind == DR_KIND_MASK || c == DR_UNKNOWN || (c > 0 && c < 8 && channels >> c & 1u))
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "%s: channels of the image must be 1%s%s, got %lld", op,
                    channels & DR__RGB ? ", 3" : "", channels & DR__RGBA ? ", 4" : "", (long long)c);
}

dr_status dr__colour_plan(const dr_desc *in, unsigned channels, const char *op, dr_plan *out, dr_error *err)
{
    DR_TRY(dr__want_colour(in, channels, op, err));
    out->desc = *in;
    return DR_OK;
}

dr_status dr__adjust_plan(const dr_desc *in, unsigned channels, const char *op, dr_plan *out, dr_error *err)
{
    DR_TRY(dr__colour_plan(in, channels, op, out, err));
    out->scratch = dr__desc_known(in) ? dr__adjust_scratch(in) : 0;
    return DR_OK;
}

/* Pillow's Image.blend of one value. */
static uint8_t blend(int degenerate, int value, float factor)
{
    float t = (float)degenerate + factor * (float)(value - degenerate);
    return (uint8_t)(t <= 0.0f ? 0.0f : t >= 255.0f ? 255.0f : t);
}

static void blend_with_value(const dr_task *task, const dr_view *in, dr_view *out, int value, double factor)
{
    uint8_t table[256];
    for (int v = 0; v < 256; v++)
        table[v] = blend(value, v, (float)factor);
    dr__tone_table(task, in, out, table);
}

void dr__adjust_brightness(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    blend_with_value(task, in, out, 0, factor);
}

static void rgba_to_l(uint8_t *dst, const uint8_t *src, size_t w)
{
    for (size_t x = 0; x < w; x++, src += 4)
        dst[x] = (uint8_t)((src[0] * 19595u + src[1] * 38470u + src[2] * 7471u + 0x8000u) >> 16);
}

/* The luminance of row y: the row itself where the image is grey, else written to `dst`. */
static const uint8_t *grey_row(const dr_task *task, const dr_view *in, int64_t y, uint8_t *dst)
{
    const uint8_t *src = in->data + y * in->stride;
    size_t w = (size_t)dr__width(&in->desc);
    switch (dr__channels(&in->desc)) {
    case 1:
        return src;
    case 3:
        task->k->rgb_to_l(dst, src, w);
        return dst;
    default:
        rgba_to_l(dst, src, w);
        return dst;
    }
}

/* int(mean + 0.5) of the luminance. */
static int mean_grey(const dr_task *task, const dr_view *in)
{
    int64_t h = dr__height(&in->desc), w = dr__width(&in->desc);
    uint64_t sum = 0;
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *row = grey_row(task, in, y, scratch_row(task, &in->desc, 0));
        uint32_t part = 0; /* a row of 2^24 pixels would overflow it; decoders stop far below */
        for (int64_t x = 0; x < w; x++)
            part += row[x];
        sum += part;
    }
    return w && h ? (int)((double)sum / (double)(w * h) + 0.5) : 0;
}

void dr__adjust_contrast(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    blend_with_value(task, in, out, mean_grey(task, in), factor);
}

/* One luminance for each pixel to `channels` equal ones; alpha, the fourth, comes from `pixels`. */
static void spread(uint8_t *dst, const uint8_t *grey, const uint8_t *pixels, size_t w, int channels)
{
    if (channels == 1) {
        memcpy(dst, grey, w);
        return;
    }
    for (size_t x = 0; x < w; x++, dst += channels) {
        dst[0] = dst[1] = dst[2] = grey[x];
        if (channels == 4)
            dst[3] = pixels[4 * x + 3];
    }
}

void dr__adjust_saturation(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    int channels = (int)dr__channels(&in->desc);
    size_t w = (size_t)dr__width(&in->desc), row = dr__row_bytes(&in->desc);
    if (channels == 1) {
        if (out->data != in->data)
            dr__view_copy(out, in);
        return;
    }
    uint8_t *flat = scratch_row(task, &in->desc, 1);
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        const uint8_t *src = in->data + y * in->stride;
        spread(flat, grey_row(task, in, y, scratch_row(task, &in->desc, 0)), src, w, channels);
        task->k->blend_u8(out->data + y * out->stride, flat, src, row, (float)factor);
    }
}

void dr__to_grey(const dr_task *task, const dr_view *in, dr_view *out)
{
    size_t w = (size_t)dr__width(&in->desc);
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        const uint8_t *grey = grey_row(task, in, y, scratch_row(task, &in->desc, 0));
        spread(out->data + y * out->stride, grey, in->data + y * in->stride, w, (int)dr__channels(&out->desc));
    }
}

/* Pillow and torch sum in float, but a multiple of 1/13 plus a half is never near a whole number, so that
 * (sum + 6) / 13 in integers is the same; 5042 / 65536 divides exactly up to 3321. */
void dr__smooth_row(uint8_t *dst, const uint8_t *above, const uint8_t *row, const uint8_t *below, size_t n,
                    size_t pixel)
{
    memcpy(dst, row, pixel);
    memcpy(dst + n - pixel, row + n - pixel, pixel);
    for (size_t i = pixel; i + pixel < n; i++) {
        uint32_t sum = above[i - pixel] + above[i] + above[i + pixel] + row[i - pixel] + 5u * row[i] + row[i + pixel] +
                       below[i - pixel] + below[i] + below[i + pixel];
        dst[i] = (uint8_t)((sum + 6u) * 5042u >> 16);
    }
}

static void keep_alpha(uint8_t *dst, const uint8_t *src, size_t w)
{
    for (size_t x = 0; x < w; x++)
        dst[4 * x + 3] = src[4 * x + 3];
}

void dr__adjust_sharpness(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    int64_t h = dr__height(&in->desc);
    size_t w = (size_t)dr__width(&in->desc), row = dr__row_bytes(&in->desc);
    if (h < 3 || w < 3) { /* Pillow leaves images alone that are smaller than the filter */
        dr__view_copy(out, in);
        return;
    }
    uint8_t *smooth = scratch_row(task, &in->desc, 0);
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *src = in->data + y * in->stride;
        uint8_t *dst = out->data + y * out->stride;
        if (y == 0 || y == h - 1) { /* the border has no smooth version */
            memcpy(dst, src, row);
            continue;
        }
        dr__smooth_row(smooth, src - in->stride, src, src + in->stride, row, row / w);
        if (row == 4 * w)
            keep_alpha(smooth, src, w);
        task->k->blend_u8(dst, smooth, src, row, (float)factor);
    }
}

void dr__adjust_parts(const dr_task *task, int backend, const dr_ints *parts, const double *factor, const dr_view *in,
                      dr_view *out)
{
    typedef void adjust(const dr_task *, const dr_view *, dr_view *, double);
    static adjust *const all[][DR__COLOUR_PARTS] = {
        [DR__BACKEND_PIL] = { dr__adjust_brightness, dr__adjust_contrast, dr__adjust_saturation, dr__adjust_hue },
        [DR__BACKEND_TENSOR] = { dr__tensor_brightness, dr__tensor_contrast, dr__tensor_saturation, dr__tensor_hue },
    };
    if (parts->n == 0 || in->desc.kind == DR_KIND_MASK) {
        dr__view_copy(out, in);
        return;
    }
    const dr_view *from = in; /* the first part reads the input, the rest work in place */
    for (int i = 0; i < parts->n; i++, from = out)
        all[backend][parts->v[i]](task, from, out, factor[parts->v[i]]);
}

double dr__adjust_cost(const dr_ints *parts, double base, const dr_desc *in)
{
    static const double per_byte[DR__COLOUR_PARTS] = { 0.4, 0.8, 0.5, 8.0 };
    double sum = base;
    for (int i = 0; i < parts->n; i++)
        sum += per_byte[parts->v[i]];
    return sum * (double)dr__row_bytes(in) * (double)dr__height(in);
}
