/* random_horizontal_flip: mirror an image left to right with probability p; boxes follow.  HWC, any element type. */
#include "op/box/boxes.h"
#include "op/op_defs.h"

struct conf {
    double p;
};

struct par {
    bool mirror;
};

static const dr_param params[] = {
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance that a sample is mirrored"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, mirror, NULL, "mirrored"),
    { 0 },
};

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    (void)in, (void)err;
    ((struct par *)par)->mirror = dr__rng_unit(rng) < c->p;
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "random_horizontal_flip", out, err);
    DR_TRY(dr__want_image(in, ~0u, "random_horizontal_flip", err));
    out->desc = *in;
    return DR_OK;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    if (dr__is_points(&in->desc))
        return dr__boxes_flip(task, "random_horizontal_flip", p->mirror, false, in, out);
    if (!p->mirror) {
        dr__view_copy(out, in);
        return DR_OK;
    }
    size_t w = (size_t)dr__width(&in->desc), pixel = dr__row_bytes(&in->desc) / (w ? w : 1);
    for (int64_t y = 0; y < dr__height(&in->desc); y++)
        task->k->hflip_row(out->data + y * out->stride, in->data + y * in->stride, w, pixel);
    return DR_OK;
}

static bool mirrors(const void *par)
{
    return ((const struct par *)par)->mirror;
}

const dr_op_def dr__op_random_horizontal_flip = {
    .name = "random_horizontal_flip",
    .version = 1,
    .summary = "mirror an image left to right with probability p",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .draw = draw,
    .plan = plan,
    .run = run,
    .mirrors = mirrors,
};
