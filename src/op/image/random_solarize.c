/* random_solarize: invert the values from a threshold on with probability p. */
#include "op/image/adjust.h"
#include "op/image/maybe.h"
#include "op/op_defs.h"

struct conf {
    double p; /* first: dr__maybe_draw reads it */
    double threshold;
};

static const dr_param params[] = {
    DR_REAL(struct conf, threshold, NULL, -1e6, 1e6, "values from here on are inverted"),
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance that a sample is solarized"),
    { 0 },
};

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    return dr__colour_plan(in, DR__GREY | DR__RGB, "random_solarize", out, err);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    if (dr__maybe_skips(par, in))
        dr__view_copy(out, in);
    else
        dr__tone_solarize(task, in, out, ((const struct conf *)task->conf)->threshold);
    return DR_OK;
}

const dr_op_def dr__op_random_solarize = {
    .name = "random_solarize",
    .version = 1,
    .summary = "invert the values from a threshold on with probability p",
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
