/* augment_tensor.c: the augmentation primitives as torchvision computes them on tensors, which is how its AugMix treats
 * PIL images too.
 *
 * Colours are those of adjust_tensor.c.  Shears, shifts and turns: places in float32 on a grid from -1 to 1,
 * four neighbours weighted with zeros beyond the edge, rounded to the nearest value.  The order of torch's own float
 * sums depends on the machine, so that single values may round the other way; tests/python says how many.
 */
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "op/image/adjust.h"
#include "op/image/augment.h"
#include "op/image/geometry.h"

#define PRIMITIVE(name)                                                                                                \
    static void name(const dr_task *task, const dr__aug_style *style, double magnitude, const dr_view *in, dr_view *out)

/* ---- shears, shifts, turns ---- */

/* What sampling one row needs. */
struct grid {
    float m[6]; /* from places around the middle to -1 .. 1 */
    float half_w, half_h;
    int64_t w, h;
    int channels;
    bool filled; /* a colour was set: mixed in by how much of a place lies outside */
    float fill[4];
};

static void open_grid(struct grid *g, const dr__aug_style *style, const dr_desc *d, const double m[6])
{
    *g = (struct grid){
        .half_w = 0.5f * (float)dr__width(d),
        .half_h = 0.5f * (float)dr__height(d),
        .w = dr__width(d),
        .h = dr__height(d),
        .channels = (int)dr__channels(d),
        .filled = style->fill.n > 0,
    };
    for (int i = 0; i < 6; i++)
        g->m[i] = (float)m[i] / (i < 3 ? g->half_w : g->half_h);
    for (int c = 0; c < g->channels && g->filled; c++)
        g->fill[c] = (float)style->fill.v[style->fill.n > 1 ? c : 0];
}

/* Where the value of output pixel (x, y) comes from, in pixels with the first centre at 0. */
static void place_of(const struct grid *g, int64_t x, int64_t y, float place[2])
{
    float gx = (float)x - 0.5f * (float)(g->w - 1), gy = (float)y - 0.5f * (float)(g->h - 1);
    float nx = dr__fused(gy, g->m[1], gx * g->m[0]) + g->m[2], ny = dr__fused(gy, g->m[4], gx * g->m[3]) + g->m[5];
    place[0] = (nx + 1.0f) * g->half_w - 0.5f;
    place[1] = (ny + 1.0f) * g->half_h - 0.5f;
}

static bool inside(const struct grid *g, int64_t x, int64_t y)
{
    return x >= 0 && y >= 0 && x < g->w && y < g->h;
}

/* Halves to even, for 0 <= v < 2^22. */
static uint8_t nearest(float v)
{
    return (uint8_t)(v + 8388608.0f - 8388608.0f);
}

static void sample_nearest(const struct grid *g, const dr_view *in, const float place[2], uint8_t *dst)
{
    int64_t x = (int64_t)dr__round_even(place[0]), y = (int64_t)dr__round_even(place[1]);
    bool here = inside(g, x, y);
    const uint8_t *src = here ? in->data + y * in->stride + x * g->channels : NULL;
    for (int c = 0; c < g->channels; c++)
        dst[c] = here ? src[c] : nearest(g->fill[c]);
}

static void sample_bilinear(const struct grid *g, const dr_view *in, const float place[2], uint8_t *dst)
{
    float fx = floorf(place[0]), fy = floorf(place[1]); /* exact */
    int64_t x = (int64_t)fx, y = (int64_t)fy;
    float east = place[0] - fx, west = 1.0f - east, south = place[1] - fy, north = 1.0f - south;
    const float weight[4] = { north * west, north * east, south * west, south * east };
    float sum[4] = { 0 }, covered = 0.0f;
    for (int k = 0; k < 4; k++) {
        if (!inside(g, x + k % 2, y + k / 2))
            continue;
        const uint8_t *src = in->data + (y + k / 2) * in->stride + (x + k % 2) * g->channels;
        for (int c = 0; c < g->channels; c++)
            sum[c] = dr__fused(weight[k], src[c], sum[c]);
        covered += weight[k];
    }
    for (int c = 0; c < g->channels; c++)
        dst[c] = nearest(g->filled ? (sum[c] - g->fill[c]) * covered + g->fill[c] : sum[c]);
}

/* Around the middle of the image, pixels to pixels. */
static void warp(const dr__aug_style *style, const double m[6], const dr_view *in, dr_view *out)
{
    struct grid g;
    open_grid(&g, style, &in->desc, m);
    for (int64_t y = 0; y < g.h; y++) {
        uint8_t *dst = out->data + y * out->stride;
        for (int64_t x = 0; x < g.w; x++, dst += g.channels) {
            float place[2];
            place_of(&g, x, y, place);
            if (style->interpolation == DR__AFFINE_NEAREST)
                sample_nearest(&g, in, place, dst);
            else
                sample_bilinear(&g, in, place, dst);
        }
    }
}

/* The first pixel's corner stays where it is. */
PRIMITIVE(shear_x)
{
    double shift = magnitude * 0.5 * (double)dr__height(&in->desc);
    (void)task;
    warp(style, (const double[6]){ 1, magnitude, shift, 0, 1, 0 }, in, out);
}

PRIMITIVE(shear_y)
{
    double shift = magnitude * 0.5 * (double)dr__width(&in->desc);
    (void)task;
    warp(style, (const double[6]){ 1, 0, 0, magnitude, 1, shift }, in, out);
}

PRIMITIVE(translate_x)
{
    (void)task;
    warp(style, (const double[6]){ 1, 0, -(double)(int64_t)magnitude, 0, 1, 0 }, in, out);
}

PRIMITIVE(translate_y)
{
    (void)task;
    warp(style, (const double[6]){ 1, 0, 0, 0, 1, -(double)(int64_t)magnitude }, in, out);
}

PRIMITIVE(rotate)
{
    static const double none[2] = { 0, 0 };
    double m[6];
    (void)task;
    if (magnitude == 0.0) {
        dr__view_copy(out, in);
        return;
    }
    dr__affine_matrix(m, none, -magnitude, none, 1.0, none);
    warp(style, m, in, out);
}

/* ---- colours ---- */

PRIMITIVE(brightness)
{
    (void)style;
    dr__tensor_brightness(task, in, out, 1.0 + magnitude);
}

PRIMITIVE(color)
{
    (void)style;
    dr__tensor_saturation(task, in, out, 1.0 + magnitude);
}

PRIMITIVE(contrast)
{
    (void)style;
    dr__tensor_contrast(task, in, out, 1.0 + magnitude);
}

PRIMITIVE(sharpness)
{
    (void)style;
    dr__tensor_sharpness(task, in, out, 1.0 + magnitude);
}

PRIMITIVE(solarize)
{
    (void)style;
    dr__tone_solarize(task, in, out, (float)(255.0 * magnitude));
}

PRIMITIVE(autocontrast)
{
    (void)style, (void)magnitude;
    dr__tensor_autocontrast(task, in, out);
}

PRIMITIVE(posterize)
{
    dr__aug_pil[DR__AUG_POSTERIZE](task, style, magnitude, in, out);
}

PRIMITIVE(equalize)
{
    dr__aug_pil[DR__AUG_EQUALIZE](task, style, magnitude, in, out);
}

dr__aug_fn *const dr__aug_tensor[DR__AUG_N] = {
    [DR__AUG_SHEAR_X] = shear_x,
    [DR__AUG_SHEAR_Y] = shear_y,
    [DR__AUG_TRANSLATE_X] = translate_x,
    [DR__AUG_TRANSLATE_Y] = translate_y,
    [DR__AUG_ROTATE] = rotate,
    [DR__AUG_BRIGHTNESS] = brightness,
    [DR__AUG_COLOR] = color,
    [DR__AUG_CONTRAST] = contrast,
    [DR__AUG_SHARPNESS] = sharpness,
    [DR__AUG_POSTERIZE] = posterize,
    [DR__AUG_SOLARIZE] = solarize,
    [DR__AUG_AUTOCONTRAST] = autocontrast,
    [DR__AUG_EQUALIZE] = equalize,
};
