/* random_resized_crop: cut a rectangle of random area, ratio and place, and bring it to a size, as PIL does (always
 * antialiased) or torch; boxes follow.  HWC uint8 with 1, 3 or 4 channels. */
#include "base/fmath.h"
#include "op/box/boxes.h"
#include "op/image/box_draw.h"
#include "op/image/geometry.h"
#include "op/image/rescale.h"
#include "op/op_defs.h"

struct conf {
    dr_ints size;
    dr_reals scale;
    dr_reals ratio;
    int interpolation;
    bool antialias;
    int backend;
    dr__box_range range;
};

struct par {
    int64_t top, left, height, width;
};

static const dr_param params[] = {
    DR_INT_LIST(struct conf, size, NULL, 1, 1e6, 1, 2, "height and width, or one number for both"),
    DR_REAL_LIST(struct conf, scale, "[0.08, 1.0]", 0, 1e6, 2, 2, "range of the crop's part of the area"),
    DR_REAL_LIST(struct conf, ratio, "[0.75, 1.3333333333333333]", 0, 1e6, 2, 2, "range of its width / height"),
    DR_CHOICE(struct conf, interpolation, "\"bilinear\"", dr__rescale_filters, "how pixels are sampled"),
    DR_BOOLEAN(struct conf, antialias, "true", "for the tensor backend; on PIL images it is always on"),
    DR__BACKEND_PARAM(struct conf),
    { 0 },
};

static const dr_param draws[] = {
    DR_INT(struct par, top, NULL, 0, 1e9, "first row"),
    DR_INT(struct par, left, NULL, 0, 1e9, "first column"),
    DR_INT(struct par, height, NULL, 1, 1e9, "rows"),
    DR_INT(struct par, width, NULL, 1, 1e9, "columns"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    DR_TRY(dr__rescale_check(c->interpolation, c->backend, "random_resized_crop", err));
    return dr__box_range_of(&c->scale, &c->ratio, "random_resized_crop", &c->range, err);
}

/* The largest crop in the middle whose ratio is allowed. */
static void central(const struct conf *c, int64_t w, int64_t h, struct par *p)
{
    double ratio = (double)w / (double)h;
    double least = DR_MIN(c->ratio.v[0], c->ratio.v[1]), most = DR_MAX(c->ratio.v[0], c->ratio.v[1]);
    p->width = w;
    p->height = h;
    if (ratio < least)
        p->height = (int64_t)dr__round_even((double)w / least);
    else if (ratio > most)
        p->width = (int64_t)dr__round_even((double)h * most);
    p->top = (h - p->height) / 2;
    p->left = (w - p->width) / 2;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    int64_t w = dr__width(in), h = dr__height(in);
    if (!dr__is_image(in))
        return dr__fail(err, DR_ERR_ARG, "random_resized_crop: the first of its fields must be the image");
    if (w < 1 || h < 1)
        return dr__fail(err, DR_ERR_ARG, "random_resized_crop: image is empty");
    for (int i = 0; i < 10; i++) {
        dr__box_draw(&c->range, rng, w, h, &p->width, &p->height);
        if (p->width < 1 || p->width > w || p->height < 1 || p->height > h)
            continue;
        p->top = (int64_t)dr__rng_below(rng, (uint64_t)(h - p->height + 1));
        p->left = (int64_t)dr__rng_below(rng, (uint64_t)(w - p->width + 1));
        return DR_OK;
    }
    central(c, w, h, p);
    return DR_OK;
}

static dr__rescale rescale(const struct conf *c, const struct par *p)
{
    return (dr__rescale){
        .from = { p->left, p->top, p->width, p->height },
        .w = dr__size_width(&c->size),
        .h = dr__size_height(&c->size),
        .filter = c->interpolation,
        .backend = c->backend,
        .antialias = c->antialias,
    };
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "random_resized_crop", out, err);
    DR_TRY(dr__want_rescalable(in, c->interpolation, "random_resized_crop", err));
    out->desc = dr__desc_resized(in, dr__size_height(&c->size), dr__size_width(&c->size));
    if (!par)
        return DR_OK;
    dr__rescale r = rescale(c, par);
    return dr__rescale_scratch(&r, in, "random_resized_crop", &out->scratch, err);
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    dr__rescale r = rescale(conf, par);
    return dr__rescale_cost(&r, in);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    dr__rescale r = rescale(task->conf, par);
    if (dr__is_points(&in->desc)) {
        dr__boxes_crop(in, out, &r.from);
        dr__boxes_scale(out, out, (double)r.w / (double)r.from.w, (double)r.h / (double)r.from.h);
        return DR_OK;
    }
    dr__rescale_run(task, &r, in, out);
    return DR_OK;
}

static dr_status rows(dr_task *task, const void *par, const dr_view *in, const dr_desc *out, dr__row_sink *sink)
{
    dr__rescale r = rescale(task->conf, par);
    (void)out;
    dr__rescale_rows(task, &r, in, sink);
    return DR_OK;
}

static dr_status feed(dr_task *task, const void *par, const dr_desc *in, const dr_desc *out, dr__row_sink *sink,
                      struct dr__bands **bands)
{
    dr__rescale r = rescale(task->conf, par);
    (void)out;
    *bands = dr__rescale_feed(task, &r, in, sink);
    return DR_OK;
}

static void region(const void *conf, const void *par, const dr_desc *in, dr_rect *need)
{
    const struct par *p = par;
    (void)conf, (void)in;
    *need = (dr_rect){ p->left, p->top, p->width, p->height };
}

const dr_op_def dr__op_random_resized_crop = {
    .name = "random_resized_crop",
    .version = 1,
    .summary = "cut a random rectangle and bring it to a size",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_WINDOW | DR_OP_RESAMPLE | DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .init = init,
    .draw = draw,
    .plan = plan,
    .cost = cost,
    .run = run,
    .rows = rows,
    .feed = feed,
    .region = region,
};
