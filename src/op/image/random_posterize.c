/* random_posterize: keep only the highest bits of each value with probability p. */
#include "op/image/adjust.h"
#include "op/image/maybe.h"
#include "op/op_defs.h"

struct conf {
    double p; /* first: dr__maybe_draw reads it */
    int64_t bits;
};

static const dr_param params[] = {
    DR_INT(struct conf, bits, NULL, 1, 8, "how many bits of each value stay"),
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance that a sample is posterized"),
    { 0 },
};

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    return dr__colour_plan(in, DR__GREY | DR__RGB, "random_posterize", out, err);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    if (dr__maybe_skips(par, in))
        dr__view_copy(out, in);
    else
        dr__tone_posterize(task, in, out, (int)((const struct conf *)task->conf)->bits);
    return DR_OK;
}

const dr_op_def dr__op_random_posterize = {
    .name = "random_posterize",
    .version = 1,
    .summary = "keep the highest bits of each value with probability p",
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
