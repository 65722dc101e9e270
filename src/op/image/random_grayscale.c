/* random_grayscale: replace colours by their luminance with probability p; the number of channels stays. */
#include "op/image/adjust.h"
#include "op/image/maybe.h"
#include "op/op_defs.h"

struct conf {
    double p; /* first: dr__maybe_draw reads it */
    int backend;
};

static const dr_param params[] = {
    DR_REAL(struct conf, p, "0.1", 0, 1, "chance that a sample is made grey"),
    DR__BACKEND_PARAM(struct conf),
    { 0 },
};

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    return dr__adjust_plan(in, DR__GREY | DR__RGB, "random_grayscale", out, err);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    return dr__maybe_run(task, par, in, out, c->backend == DR__BACKEND_PIL ? dr__to_grey : dr__tensor_grey);
}

const dr_op_def dr__op_random_grayscale = {
    .name = "random_grayscale",
    .version = 1,
    .summary = "make an image grey with probability p",
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
