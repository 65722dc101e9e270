/* mix.c: fields and labels of mixup and cutmix. */
#include "op/image/mix.h"

#include <string.h>

#include "base/alloc.h"

const dr_param dr__mix_params[] = {
    DR_INT(dr__mix_conf, num_classes, "0", 0, 1e7, "number of classes; 0: labels are weights of classes already"),
    DR_REAL(dr__mix_conf, alpha, "1.0", 1e-6, 1e6, "the share of a sample is drawn from Beta(alpha, alpha)"),
    { 0 },
};

static dr_status check_image(const dr_desc *in, const char *op, dr_error *err)
{
    char text[128];
    if (in->kind == DR_KIND_IMAGE && in->dtype == DR_F32 && in->layout != DR_LAYOUT_ANY)
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "%s: needs float32 images, got %s; put normalize or to_dtype before it", op,
                    dr__desc_text_of(in, text, sizeof text));
}

static dr_status plan_label(const dr__mix_conf *c, const char *op, const dr_desc *in, dr_desc *out, dr_error *err)
{
    char text[128];
    bool number = in->dtype == DR_I64 && (in->n_dims == 0 || (in->n_dims == 1 && in->dims[0] == 1));
    bool weights = in->dtype == DR_F32 && in->n_dims == 1;
    *out = *in;
    if (weights && (c->num_classes == 0 || c->num_classes == in->dims[0]))
        return DR_OK;
    if (!number)
        return dr__fail(err, DR_ERR_ARG, "%s: label must be an int64 number or %lld float32 weights, got %s", op,
                        (long long)c->num_classes, dr__desc_text_of(in, text, sizeof text));
    if (!c->num_classes)
        return dr__fail(err, DR_ERR_ARG, "%s: num_classes must be given, since labels are numbers", op);
    *out = (dr_desc){ .kind = in->kind, .dtype = DR_F32, .n_dims = 1, .dims = { c->num_classes } };
    return DR_OK;
}

dr_status dr__mix_plan(const dr__mix_conf *c, const char *op, const dr_desc *in, dr_desc *out, size_t *scratch,
                       dr_error *err)
{
    size_t image = 0, label = 0;
    DR_TRY(check_image(&in[0], op, err));
    out[0] = in[0];
    DR_TRY(plan_label(c, op, &in[1], &out[1], err));
    *scratch = 0;
    if (!dr__desc_known(&in[0]))
        return DR_OK;
    if (!dr__desc_bytes_dense(&out[0], &image) || !dr__desc_bytes_dense(&out[1], &label))
        return dr__fail(err, DR_ERR_LIMIT, "%s: images are too large", op);
    *scratch = DR_MAX(image, label); /* one sample, kept while its place is overwritten */
    return DR_OK;
}

size_t dr__mix_stride(const dr_view *batch)
{
    size_t bytes = 0;
    dr__desc_bytes_dense(&batch->desc, &bytes);
    return batch->desc.dims[0] ? bytes / (size_t)batch->desc.dims[0] : 0;
}

void dr__mix_floats(float *x, const float *neighbour, double lam, size_t n)
{
    float mine = (float)lam, its = (float)(1.0 - lam);
    for (size_t i = 0; i < n; i++)
        x[i] = neighbour[i] * its + x[i] * mine;
}

static dr_status one_hot(dr_task *task, const char *op, const dr_view *in, dr_view *out)
{
    int64_t n = in->desc.dims[0], classes = out->desc.dims[1];
    const int64_t *label = (const int64_t *)(const void *)in->data;
    float *weight = (float *)(void *)out->data;
    memset(weight, 0, (size_t)(n * classes) * sizeof *weight);
    for (int64_t i = 0; i < n; i++) {
        if (label[i] < 0 || label[i] >= classes)
            return dr__fail(task->err, DR_ERR_ARG, "%s: the label of sample %lld must be 0 to %lld, got %lld", op,
                            (long long)i, (long long)classes - 1, (long long)label[i]);
        weight[i * classes + label[i]] = 1.0f;
    }
    return DR_OK;
}

dr_status dr__mix_labels(dr_task *task, const char *op, double lam, const dr_view *in, dr_view *out)
{
    int64_t n = out->desc.dims[0];
    size_t classes = (size_t)out->desc.dims[1];
    float *weight = (float *)(void *)out->data, *last = (float *)(void *)task->scratch;
    if (in->desc.dtype == DR_I64)
        DR_TRY(one_hot(task, op, in, out));
    else if (in->data != out->data)
        memcpy(out->data, in->data, (size_t)n * classes * sizeof *weight);
    if (!n)
        return DR_OK;
    memcpy(last, weight + (size_t)(n - 1) * classes, classes * sizeof *weight);
    for (int64_t i = n - 1; i > 0; i--)
        dr__mix_floats(weight + (size_t)i * classes, weight + (size_t)(i - 1) * classes, lam, classes);
    dr__mix_floats(weight, last, lam, classes);
    return DR_OK;
}
