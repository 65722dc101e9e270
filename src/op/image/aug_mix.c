/* aug_mix: several chains of primitives, mixed with each other and the image (Hendrycks et al., arXiv 1912.02781).
 *
 * Drawn are the depth of each chain, the steps of all chains one after the other, and the weights: first the image's
 * own, then one for each chain.  The weighted sum is float32 in that order, cut to a whole number at the end.
 */
#include "op/image/augment.h"
#include "op/op_defs.h"

enum { N_BINS = 10, MAX_RANDOM_DEPTH = 3 };

struct conf {
    int64_t severity, mixture_width, chain_depth;
    double alpha;
    bool all_ops;
    dr__aug_style style;
};

struct par {
    dr_reals weights;
    dr_ints depths;
    dr__aug_steps steps;
};

/* torchvision treats the image as a tensor here, for which there is no bicubic turning. */
static const char *const filters[] = { "nearest", "bilinear", NULL };

static const dr_param params[] = {
    DR_INT(struct conf, severity, "3", 1, N_BINS, "how many of the 10 magnitudes are drawn from"),
    DR_INT(struct conf, mixture_width, "3", 1, DR_PARAM_LIST - 1, "how many chains"),
    DR_INT(struct conf, chain_depth, "-1", -1, DR_PARAM_LIST, "steps in a chain; below 1: 1 to 3 at random"),
    DR_REAL(struct conf, alpha, "1.0", 1e-3, 1e6, "how even the weights are"),
    DR_BOOLEAN(struct conf, all_ops, "true", "also brightness, color, contrast and sharpness"),
    DR__AUG_STYLE_PARAMS(struct conf, filters, "\"bilinear\""),
    { 0 },
};

static const dr_param draws[] = {
    DR_REAL_LIST(struct par, weights, NULL, 0, 1, 2, DR_PARAM_LIST, "of the image, then of each chain"),
    DR_INT_LIST(struct par, depths, NULL, 1, DR_PARAM_LIST, 1, DR_PARAM_LIST, "steps of each chain"),
    DR__AUG_STEP_DRAWS(struct par),
    { 0 },
};

static const dr__aug_range space[] = {
    { DR__AUG_SHEAR_X, DR__SPREAD_LINEAR, 0, 0.3, true },
    { DR__AUG_SHEAR_Y, DR__SPREAD_LINEAR, 0, 0.3, true },
    { DR__AUG_TRANSLATE_X, DR__SPREAD_WIDTH, 0, 1.0 / 3.0, true },
    { DR__AUG_TRANSLATE_Y, DR__SPREAD_HEIGHT, 0, 1.0 / 3.0, true },
    { DR__AUG_ROTATE, DR__SPREAD_LINEAR, 0, 30, true },
    { DR__AUG_POSTERIZE, DR__SPREAD_BITS, 4, 4, false },
    { DR__AUG_SOLARIZE, DR__SPREAD_LINEAR, 1, 0, false },
    { DR__AUG_AUTOCONTRAST },
    { DR__AUG_EQUALIZE },
    /* with all_ops */
    { DR__AUG_BRIGHTNESS, DR__SPREAD_LINEAR, 0, 0.9, true },
    { DR__AUG_COLOR, DR__SPREAD_LINEAR, 0, 0.9, true },
    { DR__AUG_CONTRAST, DR__SPREAD_LINEAR, 0, 0.9, true },
    { DR__AUG_SHARPNESS, DR__SPREAD_LINEAR, 0, 0.9, true },
};

enum { N_COLOUR = 4 };

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    int64_t depth = c->chain_depth < 1 ? MAX_RANDOM_DEPTH : c->chain_depth;
    if (c->mixture_width * depth > DR_PARAM_LIST)
        return dr__fail(err, DR_ERR_ARG, "aug_mix: mixture_width * chain_depth must be at most %d, got %lld * %lld",
                        DR_PARAM_LIST, (long long)c->mixture_width, (long long)depth);
    return DR_OK;
}

/* Weights of a Dirichlet distribution with all parameters alpha. */
static void draw_dirichlet(dr_rng *rng, double alpha, int n, double *weights)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += weights[i] = dr__rng_gamma(rng, alpha);
    for (int i = 0; i < n; i++)
        weights[i] = sum > 0.0 ? weights[i] / sum : 1.0 / n; /* tiny alpha may round all to 0 */
}

static void draw_weights(const struct conf *c, dr_rng *rng, dr_reals *weights)
{
    double own[2], chains[DR_PARAM_LIST];
    int n = (int)c->mixture_width;
    draw_dirichlet(rng, c->alpha, 2, own);
    draw_dirichlet(rng, c->alpha, n, chains);
    weights->n = n + 1;
    weights->v[0] = (float)own[0];
    for (int i = 0; i < n; i++)
        weights->v[i + 1] = (float)(chains[i] * own[1]);
}

static void draw_step(const struct conf *c, dr_rng *rng, const dr_desc *in, dr__aug_steps *steps)
{
    uint64_t n = DR_COUNT(space) - (c->all_ops ? 0 : N_COLOUR);
    const dr__aug_range *range = &space[dr__rng_below(rng, n)];
    int bin = (int)dr__rng_below(rng, (uint64_t)c->severity);
    dr__aug_push(steps, range, N_BINS, bin, in, rng);
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    (void)err;
    p->steps.ops.n = p->steps.magnitudes.n = 0;
    draw_weights(c, rng, &p->weights);
    p->depths.n = (int)c->mixture_width;
    for (int i = 0; i < p->depths.n; i++) {
        p->depths.v[i] = c->chain_depth < 1 ? 1 + (int64_t)dr__rng_below(rng, MAX_RANDOM_DEPTH) : c->chain_depth;
        for (int64_t k = 0; k < p->depths.v[i]; k++)
            draw_step(c, rng, in, &p->steps);
    }
    return DR_OK;
}

/* Scratch: one chain's result, the float sums, then what dr__aug_run needs. */
static size_t result_bytes(const dr_desc *d)
{
    return (dr__row_bytes(d) * (size_t)dr__height(d) + 127) & ~(size_t)63;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)par;
    DR_TRY(dr__aug_plan(&((const struct conf *)conf)->style, in, "aug_mix", out, err));
    if (dr__desc_known(in))
        out->scratch += result_bytes(in) * (1 + sizeof(float));
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const struct conf *c = conf;
    double bytes = (double)dr__row_bytes(in) * (double)dr__height(in);
    return dr__aug_cost(&((const struct par *)par)->steps, in) + 0.5 * (double)(c->mixture_width + 1) * bytes;
}

/* sums = weight * image, or sums += it. */
static void add_weighted(float *sums, const dr_view *image, float weight, bool first)
{
    size_t n = dr__row_bytes(&image->desc);
    for (int64_t y = 0; y < dr__height(&image->desc); y++, sums += n) {
        const uint8_t *row = image->data + y * image->stride;
        if (first)
            for (size_t i = 0; i < n; i++)
                sums[i] = weight * (float)row[i];
        else
            for (size_t i = 0; i < n; i++)
                sums[i] += weight * (float)row[i];
    }
}

static void cut(dr_view *out, const float *sums)
{
    size_t n = dr__row_bytes(&out->desc);
    for (int64_t y = 0; y < dr__height(&out->desc); y++, sums += n) {
        uint8_t *row = out->data + y * out->stride;
        for (size_t i = 0; i < n; i++)
            row[i] = (uint8_t)DR_MIN((int)sums[i], 255);
    }
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    const struct par *p = par;
    size_t bytes = result_bytes(&in->desc);
    dr_view result = dr__view_dense(&in->desc, task->scratch);
    float *sums = (float *)(task->scratch + bytes);
    dr_task inner = *task;
    inner.scratch += bytes * (1 + sizeof(float));
    add_weighted(sums, in, (float)p->weights.v[0], true);
    for (int i = 0, first = 0; i < p->depths.n; first += (int)p->depths.v[i++]) {
        dr__aug_run(&inner, dr__aug_tensor, &c->style, &p->steps, first, (int)p->depths.v[i], in, &result);
        add_weighted(sums, &result, (float)p->weights.v[i + 1], false);
    }
    cut(out, sums);
    return DR_OK;
}

const dr_op_def dr__op_aug_mix = {
    .name = "aug_mix",
    .version = 1,
    .summary = "several chains of primitives, mixed with each other and the image",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_MOVES,
    .kinds = DR__ON_IMAGES,
    .init = init,
    .draw = draw,
    .plan = plan,
    .cost = cost,
    .run = run,
};
