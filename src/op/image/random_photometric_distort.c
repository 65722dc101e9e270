/* random_photometric_distort: SSD's changes of colour: brightness, contrast, saturation, hue and the order of the
 * channels, each with probability p; the contrast comes before or after saturation and hue. */
#include "op/image/adjust.h"
#include "op/op_defs.h"

struct conf {
    dr_reals range[DR__COLOUR_PARTS];
    double p;
    int backend;
};

struct par {
    dr_ints parts; /* as done */
    double factor[DR__COLOUR_PARTS];
    dr_ints permutation; /* which channel each one was; none: as they are */
};

#define RANGE(name, part, fallback, lo, hi)                                                                            \
    {                                                                                                                  \
#name, DR_P_REALS, offsetof(struct conf, range[part]), fallback, lo, hi, 2, 2, NULL, "least and most factor"   \
    }

static const dr_param params[] = {
    RANGE(brightness, DR__BRIGHTNESS, "[0.875, 1.125]", 0, 1e6),
    RANGE(contrast, DR__CONTRAST, "[0.5, 1.5]", 0, 1e6),
    RANGE(saturation, DR__SATURATION, "[0.5, 1.5]", 0, 1e6),
    RANGE(hue, DR__HUE, "[-0.05, 0.05]", -0.5, 0.5),
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance of each part"),
    DR__BACKEND_PARAM(struct conf),
    { 0 },
};

static const dr_param draws[] = {
    DR_INT_LIST(struct par, parts, NULL, 0, 3, 0, 4, "parts as done: 0 brightness, 1 contrast, 2 saturation, 3 hue"),
    DR__FACTOR_DRAW(struct par, brightness, DR__BRIGHTNESS, "factor"),
    DR__FACTOR_DRAW(struct par, contrast, DR__CONTRAST, "factor"),
    DR__FACTOR_DRAW(struct par, saturation, DR__SATURATION, "factor"),
    DR__FACTOR_DRAW(struct par, hue, DR__HUE, "factor"),
    DR_INT_LIST(struct par, permutation, NULL, 0, 3, 0, 4, "which channel each one was; empty: as they are"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    for (int i = 0; i < DR__COLOUR_PARTS; i++)
        if (c->range[i].v[0] > c->range[i].v[1])
            return dr__fail(err, DR_ERR_ARG,
                            "random_photometric_distort: %s must have the least number first, got (%g, %g)",
                            params[i].name, c->range[i].v[0], c->range[i].v[1]);
    return DR_OK;
}

static void draw_permutation(dr_rng *rng, int channels, dr_ints *out)
{
    out->n = channels;
    for (int i = 0; i < channels; i++)
        out->v[i] = i;
    for (int i = channels - 1; i > 0; i--) {
        int j = (int)dr__rng_below(rng, (uint64_t)i + 1);
        int64_t kept = out->v[i];
        out->v[i] = out->v[j];
        out->v[j] = kept;
    }
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    static const int before[] = { DR__BRIGHTNESS, DR__CONTRAST, DR__SATURATION, DR__HUE },
                     after[] = { DR__BRIGHTNESS, DR__SATURATION, DR__HUE, DR__CONTRAST };
    const struct conf *c = conf;
    struct par *p = par;
    bool on[DR__COLOUR_PARTS];
    (void)err;
    p->parts.n = p->permutation.n = 0;
    for (int i = 0; i < DR__COLOUR_PARTS; i++) {
        on[i] = dr__rng_unit(rng) < c->p;
        p->factor[i] = dr__rng_uniform(rng, c->range[i].v[0], c->range[i].v[1]);
    }
    const int *order = dr__rng_unit(rng) < 0.5 ? before : after;
    for (int i = 0; i < DR__COLOUR_PARTS; i++)
        if (on[order[i]])
            p->parts.v[p->parts.n++] = order[i];
    if (dr__rng_unit(rng) < c->p && dr__channels(in) == 3)
        draw_permutation(rng, 3, &p->permutation);
    return DR_OK;
}

static bool passes(const dr_desc *in)
{
    return in->kind == DR_KIND_MASK || in->kind == DR_KIND_MASKS || dr__is_points(in);
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    return dr__adjust_plan(in, DR__GREY | DR__RGB, "random_photometric_distort", out, err);
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const struct par *p = par;
    (void)conf;
    return dr__adjust_cost(&p->parts, p->permutation.n ? 0.6 : 0.1, in);
}

static void permute(dr_view *image, const int64_t *from)
{
    for (int64_t y = 0; y < dr__height(&image->desc); y++) {
        uint8_t *pixel = image->data + y * image->stride;
        for (int64_t x = 0; x < dr__width(&image->desc); x++, pixel += 3) {
            uint8_t was[] = { pixel[0], pixel[1], pixel[2] };
            for (int i = 0; i < 3; i++)
                pixel[i] = was[from[i]];
        }
    }
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    dr__adjust_parts(task, ((const struct conf *)task->conf)->backend, &p->parts, p->factor, in, out);
    if (p->permutation.n && in->desc.kind != DR_KIND_MASK)
        permute(out, p->permutation.v);
    return DR_OK;
}

const dr_op_def dr__op_random_photometric_distort = {
    .name = "random_photometric_distort",
    .version = 1,
    .summary = "change colours and the order of channels, each with probability p",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM,
    .kinds = DR__ON_IMAGES,
    .init = init,
    .draw = draw,
    .passes = passes,
    .plan = plan,
    .cost = cost,
    .run = run,
};
