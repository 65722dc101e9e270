/* crop: cut a rectangle; what lies outside the image is 0; boxes follow.  HWC, any element type. */
#include "op/box/boxes.h"
#include "op/image/geometry.h"
#include "op/op_defs.h"

struct conf {
    int64_t top, left, height, width;
};

static const dr_param params[] = {
    DR_INT(struct conf, top, NULL, -1e6, 1e6, "first row"),
    DR_INT(struct conf, left, NULL, -1e6, 1e6, "first column"),
    DR_INT(struct conf, height, NULL, 1, 1e6, "rows"),
    DR_INT(struct conf, width, NULL, 1, 1e6, "columns"),
    { 0 },
};

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "crop", out, err);
    DR_TRY(dr__want_image(in, ~0u, "crop", err));
    out->desc = dr__desc_resized(in, c->height, c->width);
    out->scratch = dr__place_scratch(&out->desc);
    return DR_OK;
}

static dr__placing placing(const struct conf *c, const dr_desc *in)
{
    return dr__placing_at(in, c->left, c->top);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    (void)par;
    if (dr__is_points(&in->desc)) {
        dr__boxes_crop(in, out, &(dr_rect){ c->left, c->top, c->width, c->height });
        return DR_OK;
    }
    dr__placing p = placing(c, &in->desc);
    dr__place(&p, in, out);
    return DR_OK;
}

static dr_status rows(dr_task *task, const void *par, const dr_view *in, const dr_desc *out, dr__row_sink *sink)
{
    dr__placing p = placing(task->conf, &in->desc);
    (void)par;
    dr__place_rows(&p, in, out, task->scratch, sink);
    return DR_OK;
}

static bool feeds(const void *conf, const void *par, const dr_desc *in)
{
    const struct conf *c = conf;
    dr__placing p = placing(c, in);
    (void)par;
    return dr__place_feeds(&p, c->width, c->height);
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
    const struct conf *c = conf;
    dr__placing p = placing(c, in);
    (void)par;
    *need = dr__place_region(&p, c->width, c->height);
}

const dr_op_def dr__op_crop = {
    .name = "crop",
    .version = 1,
    .summary = "cut a given rectangle",
    .params = params,
    .conf_size = sizeof(struct conf),
    .flags = DR_OP_WINDOW | DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .plan = plan,
    .run = run,
    .rows = rows,
    .feeds = feeds,
    .feed = feed,
    .region = region,
};
