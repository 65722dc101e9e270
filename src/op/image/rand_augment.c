/* rand_augment: num_ops primitives drawn at random, all at one magnitude (Cubuk et al., arXiv 1909.13719). */
#include "op/image/augment.h"
#include "op/op_defs.h"

struct conf {
    dr__aug_style style; /* first: dr__aug_list_run reads it */
    int64_t num_ops, magnitude, num_magnitude_bins;
};

struct par {
    dr__aug_steps steps;
};

static const dr_param params[] = {
    DR_INT(struct conf, num_ops, "2", 0, DR_PARAM_LIST, "how many primitives one after the other"),
    DR_INT(struct conf, magnitude, "9", 0, 1e6, "bin of the magnitudes, below num_magnitude_bins"),
    DR_INT(struct conf, num_magnitude_bins, "31", 2, 1e6, "into how many bins the magnitudes are divided"),
    DR__AUG_STYLE_PARAMS(struct conf, dr__turn_filters, "\"nearest\""),
    { 0 },
};

static const dr_param draws[] = { DR__AUG_STEP_DRAWS(struct par), { 0 } };

static const dr__aug_range space[] = {
    { DR__AUG_IDENTITY },
    { DR__AUG_SHEAR_X, DR__SPREAD_LINEAR, 0, 0.3, true },
    { DR__AUG_SHEAR_Y, DR__SPREAD_LINEAR, 0, 0.3, true },
    { DR__AUG_TRANSLATE_X, DR__SPREAD_WIDTH, 0, 150.0 / 331.0, true },
    { DR__AUG_TRANSLATE_Y, DR__SPREAD_HEIGHT, 0, 150.0 / 331.0, true },
    { DR__AUG_ROTATE, DR__SPREAD_LINEAR, 0, 30, true },
    { DR__AUG_BRIGHTNESS, DR__SPREAD_LINEAR, 0, 0.9, true },
    { DR__AUG_COLOR, DR__SPREAD_LINEAR, 0, 0.9, true },
    { DR__AUG_CONTRAST, DR__SPREAD_LINEAR, 0, 0.9, true },
    { DR__AUG_SHARPNESS, DR__SPREAD_LINEAR, 0, 0.9, true },
    { DR__AUG_POSTERIZE, DR__SPREAD_BITS, 8, 4, false },
    { DR__AUG_SOLARIZE, DR__SPREAD_LINEAR, 1, 0, false },
    { DR__AUG_AUTOCONTRAST },
    { DR__AUG_EQUALIZE },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    if (c->magnitude >= c->num_magnitude_bins)
        return dr__fail(err, DR_ERR_ARG, "rand_augment: magnitude must be 0 to %lld, got %lld",
                        (long long)c->num_magnitude_bins - 1, (long long)c->magnitude);
    return DR_OK;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    (void)err;
    p->steps.ops.n = p->steps.magnitudes.n = 0;
    for (int64_t i = 0; i < c->num_ops; i++) {
        const dr__aug_range *range = &space[dr__rng_below(rng, DR_COUNT(space))];
        dr__aug_push(&p->steps, range, (int)c->num_magnitude_bins, (int)c->magnitude, in, rng);
    }
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)par;
    return dr__aug_plan(conf, in, "rand_augment", out, err);
}

const dr_op_def dr__op_rand_augment = {
    .name = "rand_augment",
    .version = 1,
    .summary = "a few primitives drawn at random, all at one magnitude",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_MOVES,
    .kinds = DR__ON_IMAGES,
    .init = init,
    .draw = draw,
    .plan = plan,
    .cost = dr__aug_list_cost,
    .run = dr__aug_list_run,
};
