/* center_crop: cut the middle; an image that is smaller is padded with 0 first.  HWC, any element type. */
#include "base/fmath.h"
#include "op/box/boxes.h"
#include "op/image/geometry.h"
#include "op/op_defs.h"

struct conf {
    dr_ints size;
};

static const dr_param params[] = {
    DR_INT_LIST(struct conf, size, NULL, 1, 1e6, 1, 2, "height and width, or one number for both"),
    { 0 },
};

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "center_crop", out, err);
    DR_TRY(dr__want_image(in, ~0u, "center_crop", err));
    out->desc = dr__desc_resized(in, dr__size_height(&c->size), dr__size_width(&c->size));
    out->scratch = dr__place_scratch(&out->desc);
    return DR_OK;
}

/* Where the crop begins.  Padding puts the odd pixel last; cropping rounds halves to even, as Python does. */
static int64_t start(int64_t image, int64_t crop)
{
    return crop > image ? -((crop - image) / 2) : (int64_t)dr__round_even((double)(image - crop) / 2.0);
}

static dr__placing placing(const struct conf *c, const dr_desc *in)
{
    return dr__placing_at(in, start(dr__width(in), dr__size_width(&c->size)),
                          start(dr__height(in), dr__size_height(&c->size)));
}

static dr_status crop_boxes(dr_task *task, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    const dr_desc *frame = NULL;
    DR_TRY(dr__boxes_frame(task, "center_crop", &frame));
    dr__placing p = placing(c, frame);
    dr__boxes_crop(in, out, &(dr_rect){ p.x, p.y, dr__size_width(&c->size), dr__size_height(&c->size) });
    return DR_OK;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    if (dr__is_points(&in->desc))
        return crop_boxes(task, in, out);
    dr__placing p = placing(task->conf, &in->desc);
    (void)par;
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
    return dr__place_feeds(&p, dr__size_width(&c->size), dr__size_height(&c->size));
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
    *need = dr__place_region(&p, dr__size_width(&c->size), dr__size_height(&c->size));
}

const dr_op_def dr__op_center_crop = {
    .name = "center_crop",
    .version = 1,
    .summary = "cut the middle of an image",
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
