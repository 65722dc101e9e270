/* boxes.c: moving boxes and key points as their image is moved. */
#include "op/box/boxes.h"

#include <math.h>
#include <string.h>

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
    DR_TRY(dr__want_points(in, op, err));
    out->desc = *in;
    return DR_OK;
}

static bool are_boxes(const dr_view *v)
{
    return v->desc.kind == DR_KIND_BOXES;
}

/* Numbers from one row to the next. */
static int64_t row_of(const dr_view *v)
{
    return v->desc.dims[v->desc.n_dims - 1];
}

static int64_t numbers(const dr_view *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->desc.n_dims; i++)
        n *= v->desc.dims[i];
    return n;
}

/* 0: an x, 1: a y, -1: what is behind them. */
static int axis_of(const dr_view *v, int64_t i)
{
    const int64_t at = i % row_of(v);
    return are_boxes(v) ? (int)(at & 1) : at < 2 ? (int)at : -1;
}

void dr__boxes_scale(const dr_view *in, dr_view *out, double x, double y)
{
    const float *src = (const float *)in->data, ratio[] = { (float)x, (float)y };
    float *dst = (float *)out->data;
    for (int64_t i = 0; i < numbers(in); i++)
        dst[i] = axis_of(in, i) < 0 ? src[i] : src[i] * ratio[axis_of(in, i)];
}

void dr__boxes_shift(const dr_view *in, dr_view *out, double x, double y)
{
    const float *src = (const float *)in->data, step[] = { (float)x, (float)y };
    float *dst = (float *)out->data;
    for (int64_t i = 0; i < numbers(in); i++)
        dst[i] = axis_of(in, i) < 0 ? src[i] : src[i] + step[axis_of(in, i)];
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
    for (int64_t i = upright ? 1 : 0; mirror && i < numbers(in); i += row_of(in)) {
        dst[i] = are_boxes(in) ? extent - src[i + 2] : -(src[i] - (extent - 1));
        if (are_boxes(in))
            dst[i + 2] = extent - src[i];
    }
    return DR_OK;
}

void dr__boxes_crop(const dr_view *in, dr_view *out, const dr_rect *part)
{
    dr__boxes_shift(in, out, -(double)part->x, -(double)part->y);
    dr__boxes_clamp(out, part->w, part->h);
}

void dr__box_affine(const double m[6], const float in[4], float out[4])
{
    const float corners[4][2] = { { in[0], in[1] }, { in[2], in[1] }, { in[2], in[3] }, { in[0], in[3] } };
    for (int axis = 0; axis < 2; axis++) {
        const float a = (float)m[axis * 3], b = (float)m[axis * 3 + 1], c = (float)m[axis * 3 + 2];
        float low = INFINITY, high = -INFINITY;
        for (int i = 0; i < 4; i++) {
            const float v = fmaf(corners[i][1], b, corners[i][0] * a) + c;
            low = fminf(low, v);
            high = fmaxf(high, v);
        }
        out[axis] = low;
        out[axis + 2] = high;
    }
}

void dr__boxes_affine(const dr_view *in, dr_view *out, const double m[6])
{
    const float *src = (const float *)in->data;
    float *dst = (float *)out->data;
    if (!are_boxes(in))
        dr__view_copy(out, in);
    for (int64_t i = 0; i < numbers(in); i += row_of(in)) {
        const float point[4] = { src[i], src[i + 1], src[i], src[i + 1] };
        float moved[4];
        dr__box_affine(m, are_boxes(in) ? src + i : point, are_boxes(in) ? dst + i : moved);
        if (!are_boxes(in))
            memcpy(dst + i, moved, 2 * sizeof *moved);
    }
}

void dr__boxes_clamp(dr_view *boxes, int64_t width, int64_t height)
{
    const float most[] = { (float)width, (float)height };
    float *v = (float *)boxes->data;
    for (int64_t i = 0; are_boxes(boxes) && i < numbers(boxes); i++)
        v[i] = v[i] < 0 ? 0 : v[i] > most[i & 1] ? most[i & 1] : v[i];
}
