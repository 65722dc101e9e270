/* clamp_bounding_boxes: cut off what boxes have outside their image.  The image stays as it is. */
#include "op/box/boxes.h"
#include "op/op_defs.h"

static const dr_param params[] = { { 0 } };

static bool passes(const dr_desc *in)
{
    return dr__is_image(in);
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    return dr__boxes_plan(in, "clamp_bounding_boxes", out, err);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const dr_desc *frame = NULL;
    (void)par;
    DR_TRY(dr__boxes_frame(task, "clamp_bounding_boxes", &frame));
    dr__view_copy(out, in);
    dr__boxes_clamp(out, dr__width(frame), dr__height(frame));
    return DR_OK;
}

const dr_op_def dr__op_clamp_bounding_boxes = {
    .name = "clamp_bounding_boxes",
    .version = 1,
    .summary = "cut off what boxes have outside their image",
    .params = params,
    .flags = DR_OP_EARLY,
    .kinds = DR__ON_IMAGES | DR__KIND(BOXES),
    .needs = DR__KIND(BOXES),
    .passes = passes,
    .plan = plan,
    .run = run,
};
