/* random_vertical_flip: mirror an image top to bottom with probability p; boxes follow.  HWC, any element type. */
#include <string.h>

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
        return dr__boxes_plan(in, "random_vertical_flip", out, err);
    DR_TRY(dr__want_image(in, ~0u, "random_vertical_flip", err));
    out->desc = *in;
    return DR_OK;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    if (dr__is_points(&in->desc))
        return dr__boxes_flip(task, "random_vertical_flip", p->mirror, true, in, out);
    int64_t h = dr__height(&in->desc);
    size_t row = dr__row_bytes(&in->desc);
    for (int64_t y = 0; y < h; y++)
        memcpy(out->data + y * out->stride, in->data + (p->mirror ? h - 1 - y : y) * in->stride, row);
    return DR_OK;
}

const dr_op_def dr__op_random_vertical_flip = {
    .name = "random_vertical_flip",
    .version = 1,
    .summary = "mirror an image top to bottom with probability p",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .draw = draw,
    .plan = plan,
    .run = run,
};
