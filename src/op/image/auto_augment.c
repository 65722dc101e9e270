/* auto_augment: two primitives by a learned policy (Cubuk et al., arXiv 1805.09501).
 *
 * A policy is 25 pairs; one pair is drawn, and each of its two primitives is done with its own probability at its own
 * magnitude (bin of 10).
 */
#include "op/image/augment.h"
#include "op/op_defs.h"

enum { N_PAIRS = 25, N_BINS = 10 };

struct conf {
    dr__aug_style style; /* first: dr__aug_list_run reads it */
    int policy;
};

struct par {
    dr__aug_steps steps; /* first, likewise */
    int64_t pair;
};

static const char *const policies[] = { "imagenet", "cifar10", "svhn", NULL };

static const dr_param params[] = {
    DR_CHOICE(struct conf, policy, "\"imagenet\"", policies, "the data set that it was learned on"),
    DR__AUG_STYLE_PARAMS(struct conf, dr__turn_filters, "\"nearest\""),
    { 0 },
};

static const dr_param draws[] = {
    DR_INT(struct par, pair, NULL, 0, N_PAIRS - 1, "row of the policy"),
    DR__AUG_STEP_DRAWS(struct par),
    { 0 },
};

/* By id: every primitive has its place. */
static const dr__aug_range space[DR__AUG_N] = {
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
    { DR__AUG_INVERT },
};

struct half {
    uint8_t id;
    float p;
    uint8_t bin;
};

#define P(id, p, bin)                                                                                                  \
    {                                                                                                                  \
        DR__AUG_##id, p, bin                                                                                           \
    }

static const struct half pairs[][N_PAIRS][2] = {
    {
        /* imagenet */
        { P(POSTERIZE, 0.4, 8), P(ROTATE, 0.6, 9) },  { P(SOLARIZE, 0.6, 5), P(AUTOCONTRAST, 0.6, 0) },
        { P(EQUALIZE, 0.8, 0), P(EQUALIZE, 0.6, 0) }, { P(POSTERIZE, 0.6, 7), P(POSTERIZE, 0.6, 6) },
        { P(EQUALIZE, 0.4, 0), P(SOLARIZE, 0.2, 4) }, { P(EQUALIZE, 0.4, 0), P(ROTATE, 0.8, 8) },
        { P(SOLARIZE, 0.6, 3), P(EQUALIZE, 0.6, 0) }, { P(POSTERIZE, 0.8, 5), P(EQUALIZE, 1, 0) },
        { P(ROTATE, 0.2, 3), P(SOLARIZE, 0.6, 8) },   { P(EQUALIZE, 0.6, 0), P(POSTERIZE, 0.4, 6) },
        { P(ROTATE, 0.8, 8), P(COLOR, 0.4, 0) },      { P(ROTATE, 0.4, 9), P(EQUALIZE, 0.6, 0) },
        { P(EQUALIZE, 0, 0), P(EQUALIZE, 0.8, 0) },   { P(INVERT, 0.6, 0), P(EQUALIZE, 1, 0) },
        { P(COLOR, 0.6, 4), P(CONTRAST, 1, 8) },      { P(ROTATE, 0.8, 8), P(COLOR, 1, 2) },
        { P(COLOR, 0.8, 8), P(SOLARIZE, 0.8, 7) },    { P(SHARPNESS, 0.4, 7), P(INVERT, 0.6, 0) },
        { P(SHEAR_X, 0.6, 5), P(EQUALIZE, 1, 0) },    { P(COLOR, 0.4, 0), P(EQUALIZE, 0.6, 0) },
        { P(EQUALIZE, 0.4, 0), P(SOLARIZE, 0.2, 4) }, { P(SOLARIZE, 0.6, 5), P(AUTOCONTRAST, 0.6, 0) },
        { P(INVERT, 0.6, 0), P(EQUALIZE, 1, 0) },     { P(COLOR, 0.6, 4), P(CONTRAST, 1, 8) },
        { P(EQUALIZE, 0.8, 0), P(EQUALIZE, 0.6, 0) },
    },
    {
        /* cifar10 */
        { P(INVERT, 0.1, 0), P(CONTRAST, 0.2, 6) },
        { P(ROTATE, 0.7, 2), P(TRANSLATE_X, 0.3, 9) },
        { P(SHARPNESS, 0.8, 1), P(SHARPNESS, 0.9, 3) },
        { P(SHEAR_Y, 0.5, 8), P(TRANSLATE_Y, 0.7, 9) },
        { P(AUTOCONTRAST, 0.5, 0), P(EQUALIZE, 0.9, 0) },
        { P(SHEAR_Y, 0.2, 7), P(POSTERIZE, 0.3, 7) },
        { P(COLOR, 0.4, 3), P(BRIGHTNESS, 0.6, 7) },
        { P(SHARPNESS, 0.3, 9), P(BRIGHTNESS, 0.7, 9) },
        { P(EQUALIZE, 0.6, 0), P(EQUALIZE, 0.5, 0) },
        { P(CONTRAST, 0.6, 7), P(SHARPNESS, 0.6, 5) },
        { P(COLOR, 0.7, 7), P(TRANSLATE_X, 0.5, 8) },
        { P(EQUALIZE, 0.3, 0), P(AUTOCONTRAST, 0.4, 0) },
        { P(TRANSLATE_Y, 0.4, 3), P(SHARPNESS, 0.2, 6) },
        { P(BRIGHTNESS, 0.9, 6), P(COLOR, 0.2, 8) },
        { P(SOLARIZE, 0.5, 2), P(INVERT, 0, 0) },
        { P(EQUALIZE, 0.2, 0), P(AUTOCONTRAST, 0.6, 0) },
        { P(EQUALIZE, 0.2, 0), P(EQUALIZE, 0.6, 0) },
        { P(COLOR, 0.9, 9), P(EQUALIZE, 0.6, 0) },
        { P(AUTOCONTRAST, 0.8, 0), P(SOLARIZE, 0.2, 8) },
        { P(BRIGHTNESS, 0.1, 3), P(COLOR, 0.7, 0) },
        { P(SOLARIZE, 0.4, 5), P(AUTOCONTRAST, 0.9, 0) },
        { P(TRANSLATE_Y, 0.9, 9), P(TRANSLATE_Y, 0.7, 9) },
        { P(AUTOCONTRAST, 0.9, 0), P(SOLARIZE, 0.8, 3) },
        { P(EQUALIZE, 0.8, 0), P(INVERT, 0.1, 0) },
        { P(TRANSLATE_Y, 0.7, 9), P(AUTOCONTRAST, 0.9, 0) },
    },
    {
        /* svhn */
        { P(SHEAR_X, 0.9, 4), P(INVERT, 0.2, 0) },       { P(SHEAR_Y, 0.9, 8), P(INVERT, 0.7, 0) },
        { P(EQUALIZE, 0.6, 0), P(SOLARIZE, 0.6, 6) },    { P(INVERT, 0.9, 0), P(EQUALIZE, 0.6, 0) },
        { P(EQUALIZE, 0.6, 0), P(ROTATE, 0.9, 3) },      { P(SHEAR_X, 0.9, 4), P(AUTOCONTRAST, 0.8, 0) },
        { P(SHEAR_Y, 0.9, 8), P(INVERT, 0.4, 0) },       { P(SHEAR_Y, 0.9, 5), P(SOLARIZE, 0.2, 6) },
        { P(INVERT, 0.9, 0), P(AUTOCONTRAST, 0.8, 0) },  { P(EQUALIZE, 0.6, 0), P(ROTATE, 0.9, 3) },
        { P(SHEAR_X, 0.9, 4), P(SOLARIZE, 0.3, 3) },     { P(SHEAR_Y, 0.8, 8), P(INVERT, 0.7, 0) },
        { P(EQUALIZE, 0.9, 0), P(TRANSLATE_Y, 0.6, 6) }, { P(INVERT, 0.9, 0), P(EQUALIZE, 0.6, 0) },
        { P(CONTRAST, 0.3, 3), P(ROTATE, 0.8, 4) },      { P(INVERT, 0.8, 0), P(TRANSLATE_Y, 0, 2) },
        { P(SHEAR_Y, 0.7, 6), P(SOLARIZE, 0.4, 8) },     { P(INVERT, 0.6, 0), P(ROTATE, 0.8, 4) },
        { P(SHEAR_Y, 0.3, 7), P(TRANSLATE_X, 0.9, 3) },  { P(SHEAR_X, 0.1, 6), P(INVERT, 0.6, 0) },
        { P(SOLARIZE, 0.7, 2), P(TRANSLATE_Y, 0.6, 7) }, { P(SHEAR_Y, 0.8, 4), P(INVERT, 0.8, 0) },
        { P(SHEAR_X, 0.7, 9), P(TRANSLATE_Y, 0.8, 3) },  { P(SHEAR_Y, 0.8, 5), P(AUTOCONTRAST, 0.7, 0) },
        { P(SHEAR_X, 0.7, 2), P(INVERT, 0.1, 0) },
    },
};

#undef P

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    (void)err;
    p->steps.ops.n = p->steps.magnitudes.n = 0;
    p->pair = (int64_t)dr__rng_below(rng, N_PAIRS);
    for (int i = 0; i < 2; i++) {
        const struct half *half = &pairs[c->policy][p->pair][i];
        if (dr__rng_unit(rng) < (double)half->p)
            dr__aug_push(&p->steps, &space[half->id], N_BINS, half->bin, in, rng);
    }
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)par;
    return dr__aug_plan(conf, in, "auto_augment", out, err);
}

const dr_op_def dr__op_auto_augment = {
    .name = "auto_augment",
    .version = 1,
    .summary = "two primitives by a learned policy",
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
