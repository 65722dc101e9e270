/* color_jitter: brightness, contrast, saturation and hue by random factors, in random order.
 *
 * Each setting is a number a (factors 1 - a to 1 + a; hue -a to a), a pair (least, most) or null: that one is left out.
 * Leaving the hue out is not the same as turning it by 0, which goes through HSV and back, on PIL images in 8 bits.
 */
#include "op/image/adjust.h"
#include "op/op_defs.h"

struct range {
    bool on;
    double lo, hi;
};

struct conf {
    dr_reals brightness, contrast, saturation, hue;
    int backend;
    struct range range[DR__COLOUR_PARTS]; /* what init made of them */
};

struct par {
    dr_ints order; /* of the parts that are on */
    double factor[DR__COLOUR_PARTS];
};

static const dr_param params[] = {
    DR_REAL_LIST(struct conf, brightness, "null", 0, 1e6, 0, 2, "a: factors 1 - a to 1 + a; or (least, most)"),
    DR_REAL_LIST(struct conf, contrast, "null", 0, 1e6, 0, 2, "a: factors 1 - a to 1 + a; or (least, most)"),
    DR_REAL_LIST(struct conf, saturation, "null", 0, 1e6, 0, 2, "a: factors 1 - a to 1 + a; or (least, most)"),
    DR_REAL_LIST(struct conf, hue, "null", -0.5, 0.5, 0, 2, "a: turns of -a to a; or (least, most); -0.5 to 0.5"),
    DR__BACKEND_PARAM(struct conf),
    { 0 },
};

static const dr_param draws[] = {
    DR_INT_LIST(struct par, order, NULL, 0, 3, 0, 4, "parts as done: 0 brightness, 1 contrast, 2 saturation, 3 hue"),
    DR__FACTOR_DRAW(struct par, brightness, DR__BRIGHTNESS, "factor"),
    DR__FACTOR_DRAW(struct par, contrast, DR__CONTRAST, "factor"),
    DR__FACTOR_DRAW(struct par, saturation, DR__SATURATION, "factor"),
    DR__FACTOR_DRAW(struct par, hue, DR__HUE, "part of a turn"),
    { 0 },
};

static dr_status make_range(const dr_reals *given, double centre, const char *name, struct range *out, dr_error *err)
{
    if (given->n == 0)
        return DR_OK;
    double lo = given->v[0], hi = given->v[given->n - 1];
    if (given->n == 1) {
        if (lo < 0)
            return dr__fail(err, DR_ERR_ARG, "color_jitter: %s must not be negative if it is a single number, got %g",
                            name, lo);
        lo = centre - hi;
        hi = centre + hi;
        if (centre > 0)
            lo = DR_MAX(lo, 0.0);
    }
    if (lo > hi)
        return dr__fail(err, DR_ERR_ARG, "color_jitter: %s must have the least number first, got (%g, %g)", name, lo,
                        hi);
    *out = (struct range){ .on = lo != centre || hi != centre, .lo = lo, .hi = hi };
    return DR_OK;
}

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    DR_TRY(make_range(&c->brightness, 1.0, "brightness", &c->range[DR__BRIGHTNESS], err));
    DR_TRY(make_range(&c->contrast, 1.0, "contrast", &c->range[DR__CONTRAST], err));
    DR_TRY(make_range(&c->saturation, 1.0, "saturation", &c->range[DR__SATURATION], err));
    return make_range(&c->hue, 0.0, "hue", &c->range[DR__HUE], err);
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    (void)in, (void)err;
    int order[DR__COLOUR_PARTS] = { DR__BRIGHTNESS, DR__CONTRAST, DR__SATURATION, DR__HUE };
    for (int i = DR__COLOUR_PARTS - 1; i > 0; i--) {
        int j = (int)dr__rng_below(rng, (uint64_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    p->order.n = 0;
    for (int i = 0; i < DR__COLOUR_PARTS; i++) {
        if (c->range[order[i]].on)
            p->order.v[p->order.n++] = order[i];
        p->factor[i] = c->range[i].on ? dr__rng_uniform(rng, c->range[i].lo, c->range[i].hi) : i == DR__HUE ? 0.0 : 1.0;
    }
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    return dr__adjust_plan(in, DR__GREY | DR__RGB, "color_jitter", out, err);
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const struct par *p = par;
    (void)conf;
    return dr__adjust_cost(&p->order, 0.1, in);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    dr__adjust_parts(task, ((const struct conf *)task->conf)->backend, &p->order, p->factor, in, out);
    return DR_OK;
}

const dr_op_def dr__op_color_jitter = {
    .name = "color_jitter",
    .version = 1,
    .summary = "change brightness, contrast, saturation and hue by random factors",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM,
    .kinds = DR__ON_IMAGES,
    .init = init,
    .draw = draw,
    .plan = plan,
    .cost = cost,
    .run = run,
};
