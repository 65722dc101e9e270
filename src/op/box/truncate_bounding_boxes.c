/* truncate_bounding_boxes: round coordinates towards 0, as torchvision does with integer boxes after each op that
 * scales.
 *
 * A plain array among the fields says of which samples: those where its first number is not 0. */
#include <math.h>

#include "op/box/boxes.h"
#include "op/op_defs.h"

static const dr_param params[] = { { 0 } };

static bool passes(const dr_desc *in)
{
    return in->kind != DR_KIND_BOXES;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    DR_TRY(dr__want_boxes(in, "truncate_bounding_boxes", err));
    out->desc = *in;
    return DR_OK;
}

static bool is_asked(const dr_task *task)
{
    for (int i = 0; i < task->n_fields; i++) {
        const dr_view *v = task->fields[i];
        if (v->desc.kind == DR_KIND_ARRAY && v->desc.dtype == DR_I64)
            return v->data && *(const int64_t *)v->data != 0;
    }
    return true;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    (void)par;
    dr__view_copy(out, in);
    float *numbers = (float *)out->data;
    if (is_asked(task))
        for (int64_t i = 0; i < 4 * out->desc.dims[0]; i++)
            numbers[i] = numbers[i] < 0 ? ceilf(numbers[i]) : floorf(numbers[i]);
    return DR_OK;
}

const dr_op_def dr__op_truncate_bounding_boxes = {
    .name = "truncate_bounding_boxes",
    .version = 1,
    .summary = "round boxes towards 0, as torchvision's integer boxes",
    .params = params,
    .flags = DR_OP_EARLY,
    .kinds = DR__ON_IMAGES | DR__KIND(BOXES),
    .needs = DR__KIND(BOXES),
    .passes = passes,
    .plan = plan,
    .run = run,
};
