/* random_autocontrast: stretch each channel to the full range with probability p. */
#include "op/image/adjust.h"
#include "op/image/maybe.h"
#include "op/op_defs.h"

struct conf {
    double p; /* first: dr__maybe_draw reads it */
    int backend;
};

static const dr_param params[] = {
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance that a sample is stretched"),
    DR__BACKEND_PARAM(struct conf),
    { 0 },
};

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    return dr__colour_plan(in, DR__GREY | DR__RGB, "random_autocontrast", out, err);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    return dr__maybe_run(task, par, in, out,
                         c->backend == DR__BACKEND_PIL ? dr__tone_autocontrast : dr__tensor_autocontrast);
}

const dr_op_def dr__op_random_autocontrast = {
    .name = "random_autocontrast",
    .version = 1,
    .summary = "stretch the values of each channel to 0 to 255 with probability p",
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
