/* random_affine: turn, shift, scale and shear an image at random, as torchvision's affine() does on PIL images;
 * boxes follow.  HWC uint8 with 1, 3 or 4 channels. */
#include "base/fmath.h"
#include "op/box/boxes.h"
#include "op/image/geometry.h"
#include "op/image/turn.h"
#include "op/op_defs.h"

struct conf {
    dr_reals degrees;
    dr_reals translate;
    dr_reals scale;
    dr_reals shear;
    int interpolation;
    dr_reals fill;
    dr_reals center;
    double angle_range[2];
    double shear_range[4]; /* x from, to; y from, to */
};

struct par {
    double angle;
    int64_t translate_x, translate_y;
    double scale;
    double shear_x, shear_y;
};

static const dr_param params[] = {
    DR_REAL_LIST(struct conf, degrees, NULL, -36000, 36000, 1, 2, "range of angles; one number d is -d to d"),
    DR_REAL_LIST(struct conf, translate, "null", 0, 1, 0, 2, "largest shift in x and y as parts of width and height"),
    DR_REAL_LIST(struct conf, scale, "null", 1e-6, 1e6, 0, 2, "range of scales"),
    DR_REAL_LIST(struct conf, shear, "null", -89, 89, 0, 4, "range of shear angles in x, then y; d is -d to d in x"),
    DR_CHOICE(struct conf, interpolation, "\"nearest\"", dr__turn_filters, "how pixels are sampled"),
    DR_REAL_LIST(struct conf, fill, "0", -1e30, 1e30, 0, 4, "value outside the image: one, or one per channel"),
    DR_REAL_LIST(struct conf, center, "null", -1e6, 1e6, 0, 2, "x and y of the centre; null: the middle"),
    { 0 },
};

static const dr_param draws[] = {
    DR_REAL(struct par, angle, NULL, -36000, 36000, "degrees, clockwise"),
    DR_INT(struct par, translate_x, NULL, -1e9, 1e9, "shift to the right in pixels"),
    DR_INT(struct par, translate_y, NULL, -1e9, 1e9, "shift down in pixels"),
    DR_REAL(struct par, scale, NULL, 0, 1e6, "scale"),
    DR_REAL(struct par, shear_x, NULL, -89, 89, "degrees"),
    DR_REAL(struct par, shear_y, NULL, -89, 89, "degrees"),
    { 0 },
};

static dr_status check_pair(const dr_reals *list, const char *name, dr_error *err)
{
    if (list->n != 1)
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "random_affine: %s must be two numbers, got one", name);
}

static dr_status set_shear(struct conf *c, dr_error *err)
{
    if (c->shear.n == 3)
        return dr__fail(err, DR_ERR_ARG, "random_affine: shear must have 1, 2 or 4 numbers, got 3");
    if (c->shear.n)
        DR_TRY(dr__angle_range(&c->shear, "shear", "random_affine", c->shear_range, err));
    if (c->shear.n == 4) {
        c->shear_range[2] = c->shear.v[2];
        c->shear_range[3] = c->shear.v[3];
    }
    return DR_OK;
}

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    DR_TRY(dr__check_center(&c->center, "random_affine", err));
    DR_TRY(check_pair(&c->translate, "translate", err));
    DR_TRY(check_pair(&c->scale, "scale", err));
    DR_TRY(set_shear(c, err));
    return dr__angle_range(&c->degrees, "degrees", "random_affine", c->angle_range, err);
}

static int64_t draw_shift(const struct conf *c, dr_rng *rng, int axis, int64_t extent)
{
    if (!c->translate.n)
        return 0;
    double most = c->translate.v[axis] * (double)extent;
    return (int64_t)dr__round_even(dr__rng_uniform(rng, -most, most));
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    (void)err;
    p->angle = dr__rng_uniform(rng, c->angle_range[0], c->angle_range[1]);
    p->translate_x = draw_shift(c, rng, 0, dr__width(in));
    p->translate_y = draw_shift(c, rng, 1, dr__height(in));
    p->scale = c->scale.n ? dr__rng_uniform(rng, c->scale.v[0], c->scale.v[1]) : 1.0;
    p->shear_x = c->shear.n ? dr__rng_uniform(rng, c->shear_range[0], c->shear_range[1]) : 0.0;
    p->shear_y = c->shear.n == 4 ? dr__rng_uniform(rng, c->shear_range[2], c->shear_range[3]) : 0.0;
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    uint8_t fill[DR__PIXEL_MAX];
    (void)par;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "random_affine", out, err);
    DR_TRY(dr__want_turnable(in, "random_affine", err));
    DR_TRY(dr__fill_pixel(&c->fill, in, "random_affine", fill, err));
    out->desc = *in;
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    (void)par;
    if (dr__is_points(in))
        return 0;
    return dr__turn_cost(((const struct conf *)conf)->interpolation, in);
}

typedef void matrix_fn(double m[6], const double center[2], double angle, const double translate[2], double scale,
                       const double shear[2]);

static void matrix_of(const struct conf *c, const struct par *p, const dr_desc *in, matrix_fn *make, double m[6])
{
    const double middle[2] = { (double)dr__width(in) * 0.5, (double)dr__height(in) * 0.5 };
    const double shift[2] = { (double)p->translate_x, (double)p->translate_y };
    const double shear[2] = { p->shear_x, p->shear_y };
    make(m, c->center.n ? c->center.v : middle, p->angle, shift, p->scale, shear);
}

static dr_status move_boxes(const dr_task *task, const struct par *p, const dr_view *in, dr_view *out)
{
    const dr_desc *frame = NULL;
    double m[6];
    DR_TRY(dr__boxes_frame(task, "random_affine", &frame));
    matrix_of(task->conf, p, frame, dr__affine_forward, m);
    dr__boxes_affine(in, out, m);
    dr__boxes_clamp(out, dr__width(frame), dr__height(frame));
    return DR_OK;
}

/* Seen from the middle of the image. */
static void mask_matrix(const struct conf *c, const struct par *p, const dr_desc *in, double m[6])
{
    double center[2];
    dr__center_from_middle(&c->center, in, center);
    dr__affine_matrix(m, center, p->angle, (double[2]){ (double)p->translate_x, (double)p->translate_y }, p->scale,
                      (double[2]){ p->shear_x, p->shear_y });
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    if (dr__is_points(&in->desc))
        return move_boxes(task, par, in, out);
    dr__raster src = dr__raster_of(in), dst = dr__raster_of(out);
    uint8_t fill[DR__PIXEL_MAX];
    double m[6];
    DR_TRY(dr__fill_pixel(&c->fill, &in->desc, "random_affine", fill, task->err));
    if (in->desc.kind == DR_KIND_MASK) {
        mask_matrix(c, par, &in->desc, m);
        dr__affine_nearest_torch(&dst, &src, dr__pixel_bytes(&in->desc), m, fill);
        return DR_OK;
    }
    matrix_of(c, par, &in->desc, dr__affine_matrix, m);
    dr__affine_u8(&dst, &src, dr__pixel_bytes(&in->desc), m, dr__turn_filter(c->interpolation, &in->desc), fill);
    return DR_OK;
}

const dr_op_def dr__op_random_affine = {
    .name = "random_affine",
    .version = 1,
    .summary = "turn, shift, scale and shear an image at random",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .init = init,
    .draw = draw,
    .plan = plan,
    .cost = cost,
    .run = run,
};
