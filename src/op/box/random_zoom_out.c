/* random_zoom_out: with probability p, put the image somewhere on a larger canvas of its shape; boxes follow.  HWC, any
 * element type. */
#include "op/box/boxes.h"
#include "op/image/geometry.h"
#include "op/op_defs.h"

struct conf {
    double p;
    dr_reals fill;
    dr_reals side_range;
};

struct par {
    bool applied;
    int64_t left, top, width, height; /* of the image on the canvas; of the canvas */
};

static const dr_param params[] = {
    DR_REAL_LIST(struct conf, fill, "0", -1e30, 1e30, 0, 16, "value of the canvas: one, or one per channel"),
    DR_REAL_LIST(struct conf, side_range, "[1, 4]", 1, 1000, 2, 2,
                 "least and most of the canvas' sides, in the image's"),
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance that a sample is changed"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, applied, NULL, "changed"),
    DR_INT(struct par, left, NULL, 0, 1e9, "columns before the image"),
    DR_INT(struct par, top, NULL, 0, 1e9, "rows above it"),
    DR_INT(struct par, width, NULL, 1, 1e9, "columns of the canvas"),
    DR_INT(struct par, height, NULL, 1, 1e9, "rows of the canvas"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    if (c->side_range.v[0] > c->side_range.v[1])
        return dr__fail(err, DR_ERR_ARG, "random_zoom_out: side_range must have the least number first, got (%g, %g)",
                        c->side_range.v[0], c->side_range.v[1]);
    return DR_OK;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    if (!dr__is_image(in))
        return dr__fail(err, DR_ERR_ARG, "random_zoom_out: the first of its fields must be the image");
    int64_t w = dr__width(in), h = dr__height(in);
    p->applied = dr__rng_unit(rng) < c->p;
    double ratio = dr__rng_uniform(rng, c->side_range.v[0], c->side_range.v[1]);
    double x = dr__rng_unit(rng), y = dr__rng_unit(rng);
    p->width = p->applied ? (int64_t)((double)w * ratio) : w;
    p->height = p->applied ? (int64_t)((double)h * ratio) : h;
    p->left = (int64_t)((double)(p->width - w) * x);
    p->top = (int64_t)((double)(p->height - h) * y);
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    const struct par *p = par;
    uint8_t fill[DR__PIXEL_MAX];
    if (dr__is_points(in))
        return dr__boxes_plan(in, "random_zoom_out", out, err);
    DR_TRY(dr__want_image(in, ~0u, "random_zoom_out", err));
    DR_TRY(dr__fill_pixel(&c->fill, in, "random_zoom_out", fill, err));
    out->desc = p ? dr__desc_resized(in, p->height, p->width) : dr__desc_resized(in, DR_UNKNOWN, DR_UNKNOWN);
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const struct par *p = par;
    (void)conf;
    return 0.15 * (double)p->width * (double)p->height * (double)dr__pixel_bytes(in);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    const struct par *p = par;
    if (dr__is_points(&in->desc)) {
        dr__boxes_shift(in, out, (double)p->left, (double)p->top);
        if (p->applied)
            dr__boxes_clamp(out, p->width, p->height);
        return DR_OK;
    }
    dr__placing place = dr__placing_at(&in->desc, -p->left, -p->top);
    DR_TRY(dr__fill_pixel(&c->fill, &in->desc, "random_zoom_out", place.fill, task->err));
    dr__place(&place, in, out);
    return DR_OK;
}

const dr_op_def dr__op_random_zoom_out = {
    .name = "random_zoom_out",
    .version = 1,
    .summary = "put an image on a larger canvas with probability p; boxes follow",
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
