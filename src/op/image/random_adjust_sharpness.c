/* random_adjust_sharpness: blend with a smoothed copy with probability p: below 1 softer, above 1 sharper. */
#include "op/image/adjust.h"
#include "op/image/maybe.h"
#include "op/op_defs.h"

struct conf {
    double p; /* first: dr__maybe_draw reads it */
    double sharpness_factor;
    int backend;
};

static const dr_param params[] = {
    DR_REAL(struct conf, sharpness_factor, NULL, 0, 1e6, "0 is blurred, 1 the image, 2 twice as sharp"),
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance that a sample is sharpened"),
    DR__BACKEND_PARAM(struct conf),
    { 0 },
};

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    unsigned channels = DR__GREY | DR__RGB | (c->backend == DR__BACKEND_PIL ? DR__RGBA : 0);
    return dr__adjust_plan(in, channels, "random_adjust_sharpness", out, err);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    if (dr__maybe_skips(par, in))
        dr__view_copy(out, in);
    else if (c->backend == DR__BACKEND_TENSOR)
        dr__tensor_sharpness(task, in, out, c->sharpness_factor);
    else
        dr__adjust_sharpness(task, in, out, c->sharpness_factor);
    return DR_OK;
}

const dr_op_def dr__op_random_adjust_sharpness = {
    .name = "random_adjust_sharpness",
    .version = 1,
    .summary = "change the sharpness of an image with probability p",
    .params = params,
    .draws = dr__maybe_draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(dr__maybe),
    .flags = DR_OP_RANDOM,
    .kinds = DR__ON_IMAGES,
    .draw = dr__maybe_draw,
    .plan = plan,
    .run = run,
};
