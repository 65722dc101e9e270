/* planes.c: masks of objects, one plane after the other. */
#include "op/planes.h"

/* An op that drops rows drops whole planes, and sees all of them. */
static bool by_planes(const dr__op *op, const dr_desc *in)
{
    return in->kind == DR_KIND_MASKS && in->n_dims == 3 && !(op->def->flags & DR_OP_DROPS);
}

static dr_desc plane_of(const dr_desc *masks)
{
    dr_desc d = dr__desc_image(masks->dtype, masks->dims[1], masks->dims[2], 1);
    d.kind = DR_KIND_MASK;
    return d;
}

dr_status dr__op_plan(const dr__op *op, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    if (!by_planes(op, in))
        return op->def->plan(op->conf, par, in, out, err);
    const dr_desc plane = plane_of(in);
    DR_TRY(op->def->plan(op->conf, par, &plane, out, err));
    const dr_desc made = out->desc;
    if (made.kind != DR_KIND_MASK || dr__channels(&made) != 1)
        return dr__fail(err, DR_ERR_ARG, "%s: does not make masks of masks: leave them out of its fields",
                        op->def->name);
    out->desc = *in;
    out->desc.dtype = made.dtype;
    out->desc.dims[1] = dr__height(&made);
    out->desc.dims[2] = dr__width(&made);
    return DR_OK;
}

dr_status dr__op_run(const dr__op *op, dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    if (!by_planes(op, &in->desc))
        return op->def->run(task, par, in, out);
    const dr_desc from = plane_of(&in->desc), to = plane_of(&out->desc);
    size_t from_bytes = 0, to_bytes = 0;
    dr__desc_bytes_dense(&from, &from_bytes);
    dr__desc_bytes_dense(&to, &to_bytes);
    for (int64_t i = 0; i < in->desc.dims[0]; i++) {
        const dr_view one = dr__view_dense(&from, in->data + (size_t)i * from_bytes);
        dr_view made = dr__view_dense(&to, out->data + (size_t)i * to_bytes);
        DR_TRY(op->def->run(task, par, &one, &made));
    }
    return DR_OK;
}

double dr__op_cost(const dr__op *op, const void *par, const dr_desc *in, const dr_desc *out)
{
    const bool planes = by_planes(op, in);
    const dr_desc plane = planes ? plane_of(in) : *in;
    size_t bytes = 0;
    if (op->def->cost)
        return op->def->cost(op->conf, par, &plane) * (planes ? (double)in->dims[0] : 1.0);
    return dr__desc_bytes_dense(out, &bytes) ? (double)bytes : 0;
}
