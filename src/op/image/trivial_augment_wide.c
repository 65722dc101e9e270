/* trivial_augment_wide: one primitive at one magnitude, both drawn at random (Mueller and Hutter, arXiv 2103.10158). */
#include "op/image/augment.h"
#include "op/op_defs.h"

struct conf {
    dr__aug_style style; /* first: dr__aug_list_run reads it */
    int64_t num_magnitude_bins;
};

struct par {
    dr__aug_steps steps;
};

static const dr_param params[] = {
    DR_INT(struct conf, num_magnitude_bins, "31", 2, 1e6, "into how many bins the magnitudes are divided"),
    DR__AUG_STYLE_PARAMS(struct conf, dr__turn_filters, "\"nearest\""),
    { 0 },
};

static const dr_param draws[] = { DR__AUG_STEP_DRAWS(struct par), { 0 } };

static const dr__aug_range space[] = {
    { DR__AUG_IDENTITY },
    { DR__AUG_SHEAR_X, DR__SPREAD_LINEAR, 0, 0.99, true },
    { DR__AUG_SHEAR_Y, DR__SPREAD_LINEAR, 0, 0.99, true },
    { DR__AUG_TRANSLATE_X, DR__SPREAD_LINEAR, 0, 32, true },
    { DR__AUG_TRANSLATE_Y, DR__SPREAD_LINEAR, 0, 32, true },
    { DR__AUG_ROTATE, DR__SPREAD_LINEAR, 0, 135, true },
    { DR__AUG_BRIGHTNESS, DR__SPREAD_LINEAR, 0, 0.99, true },
    { DR__AUG_COLOR, DR__SPREAD_LINEAR, 0, 0.99, true },
    { DR__AUG_CONTRAST, DR__SPREAD_LINEAR, 0, 0.99, true },
    { DR__AUG_SHARPNESS, DR__SPREAD_LINEAR, 0, 0.99, true },
    { DR__AUG_POSTERIZE, DR__SPREAD_BITS, 8, 6, false },
    { DR__AUG_SOLARIZE, DR__SPREAD_LINEAR, 1, 0, false },
    { DR__AUG_AUTOCONTRAST },
    { DR__AUG_EQUALIZE },
};

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    (void)err;
    p->steps.ops.n = p->steps.magnitudes.n = 0;
    const dr__aug_range *range = &space[dr__rng_below(rng, DR_COUNT(space))];
    int bin = (int)dr__rng_below(rng, (uint64_t)c->num_magnitude_bins);
    dr__aug_push(&p->steps, range, (int)c->num_magnitude_bins, bin, in, rng);
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)par;
    return dr__aug_plan(conf, in, "trivial_augment_wide", out, err);
}

const dr_op_def dr__op_trivial_augment_wide = {
    .name = "trivial_augment_wide",
    .version = 1,
    .summary = "one primitive at one magnitude, both drawn at random",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_MOVES,
    .kinds = DR__ON_IMAGES,
    .draw = draw,
    .plan = plan,
    .cost = dr__aug_list_cost,
    .run = dr__aug_list_run,
};
