/* grayscale: replace colours by their luminance, in one channel or three equal ones. */
#include "op/image/adjust.h"
#include "op/op_defs.h"

struct conf {
    int64_t num_output_channels;
    int backend;
};

static const dr_param params[] = {
    DR_INT(struct conf, num_output_channels, "1", 1, 3, "1 or 3"),
    DR__BACKEND_PARAM(struct conf),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    if (c->num_output_channels == 2)
        return dr__fail(err, DR_ERR_ARG, "grayscale: num_output_channels must be 1 or 3, got 2");
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    unsigned channels = DR__GREY | DR__RGB | (c->backend == DR__BACKEND_PIL ? DR__RGBA : 0);
    DR_TRY(dr__want_colour(in, channels, "grayscale", err));
    out->desc = *in;
    if (in->kind == DR_KIND_MASK)
        return DR_OK;
    out->desc.n_dims = 3;
    out->desc.dims[2] = c->num_output_channels;
    out->scratch = dr__desc_known(in) ? dr__adjust_scratch(in) : 0;
    return DR_OK;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    (void)par;
    if (in->desc.kind == DR_KIND_MASK)
        dr__view_copy(out, in);
    else if (c->backend == DR__BACKEND_TENSOR)
        dr__tensor_grey(task, in, out);
    else
        dr__to_grey(task, in, out);
    return DR_OK;
}

const dr_op_def dr__op_grayscale = {
    .name = "grayscale",
    .version = 1,
    .summary = "replace colours by their luminance",
    .params = params,
    .conf_size = sizeof(struct conf),
    .flags = 0,
    .kinds = DR__ON_IMAGES,
    .init = init,
    .plan = plan,
    .run = run,
};
