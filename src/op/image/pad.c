/* pad: add borders (or cut them, where negative); boxes follow.  HWC, any element type. */
#include "op/box/boxes.h"
#include "op/image/geometry.h"
#include "op/op_defs.h"

struct conf {
    dr_ints padding;
    dr_reals fill;
    int padding_mode;
    int64_t sides[4]; /* left, top, right, bottom */
};

static const dr_param params[] = {
    DR_INT_LIST(struct conf, padding, NULL, -1e6, 1e6, 1, 4, "all sides; x and y; or left, top, right, bottom"),
    DR_REAL_LIST(struct conf, fill, "0", -1e30, 1e30, 0, 16, "border value for constant: one, or one per channel"),
    DR_CHOICE(struct conf, padding_mode, "\"constant\"", dr__border_names, "how the border is made"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    return dr__padding_sides(&c->padding, "pad", c->sides, err);
}

static int64_t grow(int64_t extent, int64_t before, int64_t after)
{
    return extent < 0 ? DR_UNKNOWN : extent + before + after;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    uint8_t fill[DR__PIXEL_MAX];
    (void)par;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "pad", out, err);
    DR_TRY(dr__want_image(in, ~0u, "pad", err));
    DR_TRY(dr__fill_pixel(&c->fill, in, "pad", fill, err));
    DR_TRY(dr__padding_fits(in, c->sides, "pad", err));
    out->desc = dr__desc_resized(in, grow(dr__height(in), c->sides[1], c->sides[3]),
                                 grow(dr__width(in), c->sides[0], c->sides[2]));
    return DR_OK;
}

static dr_status pad_boxes(dr_task *task, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    const dr_desc *frame = NULL;
    DR_TRY(dr__boxes_frame(task, "pad", &frame));
    dr_rect canvas = { -c->sides[0], -c->sides[1], grow(dr__width(frame), c->sides[0], c->sides[2]),
                       grow(dr__height(frame), c->sides[1], c->sides[3]) };
    dr__boxes_crop(in, out, &canvas);
    return DR_OK;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    if (dr__is_points(&in->desc))
        return pad_boxes(task, in, out);
    dr__placing p = dr__placing_padded(&in->desc, c->sides, (dr__border)c->padding_mode, 0, 0);
    (void)par;
    DR_TRY(dr__fill_pixel(&c->fill, &in->desc, "pad", p.fill, task->err));
    dr__place(&p, in, out);
    return DR_OK;
}

const dr_op_def dr__op_pad = {
    .name = "pad",
    .version = 1,
    .summary = "add borders to an image",
    .params = params,
    .conf_size = sizeof(struct conf),
    .flags = DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .init = init,
    .plan = plan,
    .run = run,
};
