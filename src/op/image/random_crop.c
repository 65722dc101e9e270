/* random_crop: cut a rectangle of a given size at a random place, from the padded image if so set; boxes follow.  HWC,
 * any element type. */
#include "op/box/boxes.h"
#include "op/image/geometry.h"
#include "op/op_defs.h"

struct conf {
    dr_ints size;
    dr_ints padding;
    bool pad_if_needed;
    dr_reals fill;
    int padding_mode;
    int64_t sides[4]; /* left, top, right, bottom */
};

struct par {
    int64_t top, left, height, width; /* in the padded image */
    dr_ints padding;                  /* left, top, right, bottom */
};

static const dr_param params[] = {
    DR_INT_LIST(struct conf, size, NULL, 1, 1e6, 1, 2, "height and width, or one number for both"),
    DR_INT_LIST(struct conf, padding, "null", -1e6, 1e6, 0, 4, "all sides; x and y; or left, top, right, bottom"),
    DR_BOOLEAN(struct conf, pad_if_needed, "false", "pad images that are smaller than the crop"),
    DR_REAL_LIST(struct conf, fill, "0", -1e30, 1e30, 0, 16, "border value for constant: one, or one per channel"),
    DR_CHOICE(struct conf, padding_mode, "\"constant\"", dr__border_names, "how the border is made"),
    { 0 },
};

static const dr_param draws[] = {
    DR_INT(struct par, top, NULL, 0, 1e9, "first row in the padded image"),
    DR_INT(struct par, left, NULL, 0, 1e9, "first column in the padded image"),
    DR_INT(struct par, height, NULL, 1, 1e6, "rows"),
    DR_INT(struct par, width, NULL, 1, 1e6, "columns"),
    DR_INT_LIST(struct par, padding, NULL, -1e6, 1e6, 4, 4, "left, top, right, bottom"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    return dr__padding_sides(&c->padding, "random_crop", c->sides, err);
}

/* Pads one axis as needed; returns its padded extent. */
static int64_t pad_axis(const struct conf *c, int64_t extent, int64_t crop, int64_t *before, int64_t *after)
{
    int64_t missing = crop - (extent + *before + *after);
    if (c->pad_if_needed && missing > 0) {
        *before += missing;
        *after += missing;
    }
    return extent + *before + *after;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    int64_t *side = p->padding.v;
    if (!dr__is_image(in))
        return dr__fail(err, DR_ERR_ARG, "random_crop: the first of its fields must be the image");
    *p = (struct par){ .height = dr__size_height(&c->size), .width = dr__size_width(&c->size), .padding.n = 4 };
    for (int i = 0; i < 4; i++)
        side[i] = c->sides[i];
    DR_TRY(dr__padding_fits(in, side, "random_crop", err));
    int64_t h = pad_axis(c, dr__height(in), p->height, &side[1], &side[3]);
    int64_t w = pad_axis(c, dr__width(in), p->width, &side[0], &side[2]);
    if (h < p->height || w < p->width)
        return dr__fail(err, DR_ERR_ARG, "random_crop: crop %lldx%lld is larger than the %simage %lldx%lld",
                        (long long)p->width, (long long)p->height, c->padding.n ? "padded " : "", (long long)w,
                        (long long)h);
    p->top = (int64_t)dr__rng_below(rng, (uint64_t)(h - p->height + 1));
    p->left = (int64_t)dr__rng_below(rng, (uint64_t)(w - p->width + 1));
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    uint8_t fill[DR__PIXEL_MAX];
    (void)par;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "random_crop", out, err);
    DR_TRY(dr__want_image(in, ~0u, "random_crop", err));
    DR_TRY(dr__fill_pixel(&c->fill, in, "random_crop", fill, err));
    out->desc = dr__desc_resized(in, dr__size_height(&c->size), dr__size_width(&c->size));
    out->scratch = dr__place_scratch(&out->desc);
    return DR_OK;
}

static dr__placing placing(const struct conf *c, const struct par *p, const dr_desc *in)
{
    return dr__placing_padded(in, p->padding.v, (dr__border)c->padding_mode, p->left, p->top);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    const struct par *drawn = par;
    if (dr__is_points(&in->desc)) {
        dr__boxes_shift(in, out, (double)drawn->padding.v[0], (double)drawn->padding.v[1]); /* rounds as torchvision */
        dr__boxes_crop(out, out, &(dr_rect){ drawn->left, drawn->top, drawn->width, drawn->height });
        return DR_OK;
    }
    dr__placing p = placing(c, par, &in->desc);
    DR_TRY(dr__fill_pixel(&c->fill, &in->desc, "random_crop", p.fill, task->err));
    dr__place(&p, in, out);
    return DR_OK;
}

static dr_status rows(dr_task *task, const void *par, const dr_view *in, const dr_desc *out, dr__row_sink *sink)
{
    const struct conf *c = task->conf;
    dr__placing p = placing(c, par, &in->desc);
    DR_TRY(dr__fill_pixel(&c->fill, &in->desc, "random_crop", p.fill, task->err));
    dr__place_rows(&p, in, out, task->scratch, sink);
    return DR_OK;
}

static bool feeds(const void *conf, const void *par, const dr_desc *in)
{
    const struct par *drawn = par;
    dr__placing p = placing(conf, drawn, in);
    return dr__place_feeds(&p, drawn->width, drawn->height);
}

static dr_status feed(dr_task *task, const void *par, const dr_desc *in, const dr_desc *out, dr__row_sink *sink,
                      struct dr__bands **bands)
{
    (void)par, (void)in, (void)out;
    *bands = dr__place_feed(task->scratch, sink);
    return DR_OK;
}

static void region(const void *conf, const void *par, const dr_desc *in, dr_rect *need)
{
    const struct par *drawn = par;
    dr__placing p = placing(conf, drawn, in);
    *need = dr__place_region(&p, drawn->width, drawn->height);
}

const dr_op_def dr__op_random_crop = {
    .name = "random_crop",
    .version = 1,
    .summary = "cut a rectangle at a random place",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_WINDOW | DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .init = init,
    .draw = draw,
    .plan = plan,
    .run = run,
    .rows = rows,
    .feeds = feeds,
    .feed = feed,
    .region = region,
};
