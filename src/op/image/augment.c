/* augment.c: drawing, planning and running lists of augmentation primitives. */
#include "op/image/augment.h"

#include "base/fmath.h"
#include "op/image/adjust.h"
#include "op/image/geometry.h"

/* torch.linspace in float32: from both ends to the middle. */
static float linspace(float lo, float hi, int n, int i)
{
    float step = (hi - lo) / (float)(n - 1);
    return i < n / 2 ? lo + step * (float)i : hi - step * (float)(n - i - 1);
}

double dr__aug_magnitude(const dr__aug_range *range, int n_bins, int i, const dr_desc *in)
{
    switch (range->spread) {
    case DR__SPREAD_LINEAR:
        return linspace((float)range->lo, (float)range->hi, n_bins, i);
    case DR__SPREAD_WIDTH:
        return linspace((float)range->lo, (float)(range->hi * (double)dr__width(in)), n_bins, i);
    case DR__SPREAD_HEIGHT:
        return linspace((float)range->lo, (float)(range->hi * (double)dr__height(in)), n_bins, i);
    case DR__SPREAD_BITS:
        return dr__round_even((float)range->lo - (float)i / (float)((n_bins - 1) / range->hi));
    case DR__SPREAD_NONE:
        break;
    }
    return 0.0;
}

void dr__aug_push(dr__aug_steps *steps, const dr__aug_range *range, int n_bins, int i, const dr_desc *in, dr_rng *rng)
{
    double magnitude = dr__aug_magnitude(range, n_bins, i, in);
    if (range->with_sign && dr__rng_unit(rng) < 0.5)
        magnitude = -magnitude;
    steps->ops.v[steps->ops.n++] = range->id;
    steps->magnitudes.v[steps->magnitudes.n++] = magnitude;
}

static size_t image_bytes(const dr_desc *d)
{
    size_t bytes = dr__row_bytes(d) * (size_t)dr__height(d);
    return (bytes + 127) & ~(size_t)63; /* kernels may read a little past a row */
}

dr_status dr__aug_plan(const dr__aug_style *style, const dr_desc *in, const char *op, dr_plan *out, dr_error *err)
{
    if (in->kind == DR_KIND_MASK || dr__is_points(in))
        return dr__fail(err, DR_ERR_ARG, "%s: %s cannot follow its shears and turns; apply it to the image alone", op,
                        in->kind == DR_KIND_MASK    ? "masks"
                        : in->kind == DR_KIND_BOXES ? "boxes"
                                                    : "key points");
    DR_TRY(dr__want_colour(in, DR__GREY | DR__RGB, op, err));
    uint8_t fill[DR__PIXEL_MAX];
    DR_TRY(dr__fill_pixel(&style->fill, in, op, fill, err));
    out->desc = *in;
    out->scratch = dr__desc_known(in) ? image_bytes(in) + dr__adjust_scratch(in) : 0;
    return DR_OK;
}

double dr__aug_cost(const dr__aug_steps *steps, const dr_desc *in)
{
    static const double per_byte[DR__AUG_N] = { 0.1, 2, 2, 1, 1, 2, 0.4, 0.5, 0.8, 0.6, 0.4, 0.4, 1, 1, 0.4 };
    double sum = 0.1;
    for (int i = 0; i < steps->ops.n; i++)
        sum += per_byte[steps->ops.v[i]];
    return sum * (double)dr__row_bytes(in) * (double)dr__height(in);
}

void dr__aug_run(const dr_task *task, dr__aug_fn *const *fns, const dr__aug_style *style, const dr__aug_steps *steps,
                 int first, int n, const dr_view *in, dr_view *out)
{
    dr_view other = dr__view_dense(&in->desc, task->scratch);
    dr_task inner = *task;
    inner.scratch += image_bytes(&in->desc);
    if (n == 0)
        dr__view_copy(out, in);
    for (int i = 0; i < n; i++) { /* in turns, so that the last step writes out */
        dr_view *to = (n - i) % 2 ? out : &other;
        fns[steps->ops.v[first + i]](&inner, style, steps->magnitudes.v[first + i], in, to);
        in = to;
    }
}

double dr__aug_list_cost(const void *conf, const void *par, const dr_desc *in)
{
    (void)conf;
    return dr__aug_cost(par, in);
}

dr_status dr__aug_list_run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const dr__aug_steps *steps = par;
    dr__aug_run(task, dr__aug_pil, task->conf, steps, 0, steps->ops.n, in, out);
    return DR_OK;
}

static void warp(const dr__aug_style *style, const double m[6], const dr_view *in, dr_view *out)
{
    dr__raster src = dr__raster_of(in), dst = dr__raster_of(out);
    uint8_t fill[DR__PIXEL_MAX];
    dr__fill_pixel(&style->fill, &in->desc, "", fill, NULL); /* plan has checked it */
    dr__affine_u8(&dst, &src, (size_t)dr__channels(&in->desc), m, (dr__affine_filter)style->interpolation, fill);
}

/* The parameters of a primitive, under the names that its body uses. */
#define PRIMITIVE(name)                                                                                                \
    static void name(const dr_task *task, const dr__aug_style *style, double magnitude, const dr_view *in, dr_view *out)

PRIMITIVE(identity)
{
    (void)task, (void)style, (void)magnitude;
    dr__view_copy(out, in);
}

/* torchvision goes from the magnitude to an angle and back to its tangent, which is the magnitude. */
PRIMITIVE(shear_x)
{
    (void)task;
    warp(style, (const double[6]){ 1, magnitude, 0, 0, 1, 0 }, in, out);
}

PRIMITIVE(shear_y)
{
    (void)task;
    warp(style, (const double[6]){ 1, 0, 0, magnitude, 1, 0 }, in, out);
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
    dr__raster src = dr__raster_of(in), dst = dr__raster_of(out);
    dr__rotation rotation = dr__rotation_of(src.w, src.h, magnitude, false, NULL);
    uint8_t fill[DR__PIXEL_MAX];
    (void)task;
    dr__fill_pixel(&style->fill, &in->desc, "", fill, NULL);
    dr__rotate_u8(&dst, &src, (size_t)dr__channels(&in->desc), &rotation, (dr__affine_filter)style->interpolation,
                  fill);
}

PRIMITIVE(brightness)
{
    (void)style;
    dr__adjust_brightness(task, in, out, 1.0 + magnitude);
}

PRIMITIVE(color)
{
    (void)style;
    dr__adjust_saturation(task, in, out, 1.0 + magnitude);
}

PRIMITIVE(contrast)
{
    (void)style;
    dr__adjust_contrast(task, in, out, 1.0 + magnitude);
}

PRIMITIVE(sharpness)
{
    (void)style;
    dr__adjust_sharpness(task, in, out, 1.0 + magnitude);
}

PRIMITIVE(posterize)
{
    (void)style;
    dr__tone_posterize(task, in, out, (int)magnitude);
}

PRIMITIVE(solarize)
{
    (void)style;
    dr__tone_solarize(task, in, out, 255.0 * magnitude);
}

PRIMITIVE(autocontrast)
{
    (void)style, (void)magnitude;
    dr__tone_autocontrast(task, in, out);
}

PRIMITIVE(equalize)
{
    (void)style, (void)magnitude;
    dr__tone_equalize(task, in, out);
}

PRIMITIVE(invert)
{
    (void)style, (void)magnitude;
    dr__tone_invert(task, in, out);
}

dr__aug_fn *const dr__aug_pil[DR__AUG_N] = {
    [DR__AUG_IDENTITY] = identity,
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
    [DR__AUG_INVERT] = invert,
};
