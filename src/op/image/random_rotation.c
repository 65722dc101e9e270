/* random_rotation: turn an image by a random angle, as PIL's Image.rotate does; boxes follow.  HWC uint8 with 1, 3 or
 * 4 channels. */
#include <math.h>

#include "op/box/boxes.h"
#include "op/image/geometry.h"
#include "op/image/turn.h"
#include "op/op_defs.h"

struct conf {
    dr_reals degrees;
    int interpolation;
    bool expand;
    dr_reals center;
    dr_reals fill;
    double range[2];
};

struct par {
    double angle;
};

static const dr_param params[] = {
    DR_REAL_LIST(struct conf, degrees, NULL, -36000, 36000, 1, 2, "range of angles; one number d is -d to d"),
    DR_CHOICE(struct conf, interpolation, "\"nearest\"", dr__turn_filters, "how pixels are sampled"),
    DR_BOOLEAN(struct conf, expand, "false", "grow the image so that all of it stays visible"),
    DR_REAL_LIST(struct conf, center, "null", -1e6, 1e6, 0, 2, "x and y of the centre; null: the middle"),
    DR_REAL_LIST(struct conf, fill, "0", -1e30, 1e30, 0, 4, "value outside the image: one, or one per channel"),
    { 0 },
};

static const dr_param draws[] = {
    DR_REAL(struct par, angle, NULL, -36000, 36000, "degrees, counter-clockwise"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    DR_TRY(dr__check_center(&c->center, "random_rotation", err));
    return dr__angle_range(&c->degrees, "degrees", "random_rotation", c->range, err);
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    (void)in, (void)err;
    ((struct par *)par)->angle = dr__rng_uniform(rng, c->range[0], c->range[1]);
    return DR_OK;
}

static dr__rotation rotation(const struct conf *c, const struct par *p, const dr_desc *in)
{
    return dr__rotation_of(dr__width(in), dr__height(in), p->angle, c->expand, c->center.n ? c->center.v : NULL);
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    uint8_t fill[DR__PIXEL_MAX];
    if (dr__is_points(in))
        return dr__boxes_plan(in, "random_rotation", out, err);
    DR_TRY(dr__want_turnable(in, "random_rotation", err));
    DR_TRY(dr__fill_pixel(&c->fill, in, "random_rotation", fill, err));
    out->desc = *in;
    if (c->expand && par) {
        dr__rotation r = rotation(c, par, in);
        out->desc = dr__desc_resized(in, r.h, r.w);
    } else if (c->expand) {
        out->desc = dr__desc_resized(in, DR_UNKNOWN, DR_UNKNOWN);
    }
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    (void)par;
    if (dr__is_points(in))
        return 0;
    return dr__turn_cost(((const struct conf *)conf)->interpolation, in);
}

/* Where the image grows, boxes are seen from the corner of what the turned image covers, as in torchvision: that may be
 * half a pixel from where the pixels are, since the size is a whole number. */
static dr_status turn_boxes(const dr_task *task, const struct par *p, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    const dr_desc *frame = NULL;
    double m[6];
    DR_TRY(dr__boxes_frame(task, "random_rotation", &frame));
    const double w = (double)dr__width(frame), h = (double)dr__height(frame), middle[2] = { w * 0.5, h * 0.5 };
    dr__affine_forward(m, c->center.n ? c->center.v : middle, -p->angle, (double[2]){ 0 }, 1.0, (double[2]){ 0 });
    dr__boxes_affine(in, out, m);
    if (c->expand) {
        float whole[4];
        dr__box_affine(m, (float[4]){ 0, 0, (float)w, (float)h }, whole);
        dr__boxes_shift(out, out, -whole[0], -whole[1]);
    }
    dr__rotation r = rotation(c, p, frame);
    dr__boxes_clamp(out, r.w, r.h);
    return DR_OK;
}

/* As torchvision turns tensors; the size is that of the image, which PIL rounds alike. */
static void turn_mask(const struct conf *c, const struct par *p, const dr_desc *in, const dr__raster *src,
                      const dr__raster *dst, const uint8_t *fill)
{
    double center[2], m[6], angle = fmod(p->angle, 360.0);
    dr__center_from_middle(&c->center, in, center);
    dr__affine_matrix(m, center, -(angle < 0 ? angle + 360.0 : angle), (double[2]){ 0 }, 1.0, (double[2]){ 0 });
    dr__affine_nearest_torch(dst, src, dr__pixel_bytes(in), m, fill);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    if (dr__is_points(&in->desc))
        return turn_boxes(task, par, in, out);
    dr__rotation r = rotation(c, par, &in->desc);
    dr__raster src = dr__raster_of(in), dst = dr__raster_of(out);
    uint8_t fill[DR__PIXEL_MAX];
    DR_TRY(dr__fill_pixel(&c->fill, &in->desc, "random_rotation", fill, task->err));
    if (in->desc.kind == DR_KIND_MASK && r.turns < 0)
        turn_mask(c, par, &in->desc, &src, &dst, fill);
    else
        dr__rotate_u8(&dst, &src, dr__pixel_bytes(&in->desc), &r, dr__turn_filter(c->interpolation, &in->desc), fill);
    return DR_OK;
}

const dr_op_def dr__op_random_rotation = {
    .name = "random_rotation",
    .version = 1,
    .summary = "turn an image by a random angle",
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
