/* boxes.c: moving boxes as their image is moved. */
#include "op/box/boxes.h"

const dr_desc *dr__boxes_image(const dr_task *task)
{
    for (int i = 0; i < task->n_fields; i++)
        if (dr__is_image(&task->fields[i]->desc))
            return &task->fields[i]->desc;
    return NULL;
}

dr_status dr__boxes_frame(const dr_task *task, const char *op, const dr_desc **frame)
{
    *frame = dr__boxes_image(task);
    if (*frame)
        return DR_OK;
    return dr__fail(task->err, DR_ERR_ARG, "%s: boxes need their image among the fields (fields=\"image,boxes\")", op);
}

dr_status dr__boxes_among(const dr_task *task, const char *op, const dr_view **boxes)
{
    for (int i = 0; i < task->n_fields; i++) {
        const dr_view *v = task->fields[i];
        size_t bytes = 0;
        if (v->desc.kind != DR_KIND_BOXES)
            continue;
        DR_TRY(dr__want_boxes(&v->desc, op, task->err));
        if (!v->data && dr__desc_bytes_dense(&v->desc, &bytes) && bytes)
            return dr__fail(task->err, DR_ERR_ARG, "%s: its boxes are not known before images are decoded", op);
        *boxes = v;
        return DR_OK;
    }
    return dr__fail(task->err, DR_ERR_ARG, "%s: needs boxes among its fields (fields=\"image,boxes\")", op);
}

dr_status dr__boxes_plan(const dr_desc *in, const char *op, dr_plan *out, dr_error *err)
{
    DR_TRY(dr__want_boxes(in, op, err));
    out->desc = *in;
    return DR_OK;
}

static int64_t coordinates(const dr_view *boxes)
{
    return boxes->desc.dims[0] * 4;
}

void dr__boxes_scale(const dr_view *in, dr_view *out, double x, double y)
{
    const float *src = (const float *)in->data, ratio[] = { (float)x, (float)y };
    float *dst = (float *)out->data;
    for (int64_t i = 0; i < coordinates(in); i++)
        dst[i] = src[i] * ratio[i & 1];
}

void dr__boxes_shift(const dr_view *in, dr_view *out, double x, double y)
{
    const float *src = (const float *)in->data, step[] = { (float)x, (float)y };
    float *dst = (float *)out->data;
    for (int64_t i = 0; i < coordinates(in); i++)
        dst[i] = src[i] + step[i & 1];
}

dr_status dr__boxes_flip(const dr_task *task, const char *op, bool mirror, bool upright, const dr_view *in,
                         dr_view *out)
{
    const float *src = (const float *)in->data;
    float *dst = (float *)out->data;
    const dr_desc *frame = NULL;
    DR_TRY(dr__boxes_frame(task, op, &frame));
    float extent = (float)(upright ? dr__height(frame) : dr__width(frame));
    dr__view_copy(out, in);
    for (int64_t i = upright ? 1 : 0; mirror && i < coordinates(in); i += 4) {
        dst[i] = extent - src[i + 2];
        dst[i + 2] = extent - src[i];
    }
    return DR_OK;
}

void dr__boxes_crop(const dr_view *in, dr_view *out, const dr_rect *part)
{
    dr__boxes_shift(in, out, -(double)part->x, -(double)part->y);
    dr__boxes_clamp(out, part->w, part->h);
}

void dr__boxes_clamp(dr_view *boxes, int64_t width, int64_t height)
{
    const float most[] = { (float)width, (float)height };
    float *v = (float *)boxes->data;
    for (int64_t i = 0; i < coordinates(boxes); i++)
        v[i] = v[i] < 0 ? 0 : v[i] > most[i & 1] ? most[i & 1] : v[i];
}
