/* to_dtype: change the element type, with `scale` between the ranges 0 .. max of integers and 0 .. 1 of floats.
 *
 * As torchvision's to_dtype: integers times 1 / max; floats times 255.999 for uint8, whole part.  With `divide`,
 * integers are divided by max, as ToTensor and the older convert_image_dtype do: the last bit may differ.  Values that
 * uint8 cannot hold (where torch's result is not defined) are kept within its range.  HWC images and volumes;
 * masks of both pass unchanged. */
#include "op/image/numeric.h"
#include "op/op_defs.h"

struct conf {
    int dtype;
    bool scale;
    bool divide;
};

static const char *const names[] = { "float32", "float16", "bfloat16", "uint8", NULL };
static const dr_dtype dtypes[] = { DR_F32, DR_F16, DR_BF16, DR_U8 };

static const dr_param params[] = {
    DR_CHOICE(struct conf, dtype, "\"float32\"", names, "element type of the result"),
    DR_BOOLEAN(struct conf, scale, "false", "map the range of values, too"),
    DR_BOOLEAN(struct conf, divide, "false", "scale integers by division, as ToTensor does; the last bit may differ"),
    { 0 },
};

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    out->desc = *in;
    if (in->kind == DR_KIND_MASK || in->kind == DR_KIND_VOLUME_MASK)
        return DR_OK;
    if (in->kind == DR_KIND_VOLUME)
        DR_TRY(dr__want_volume(in, DR__NUMERIC_TYPES, "to_dtype", err));
    else
        DR_TRY(dr__want_image(in, DR__NUMERIC_TYPES, "to_dtype", err));
    out->desc.dtype = dtypes[c->dtype];
    return DR_OK;
}

struct how {
    dr_dtype from, to;
    bool scale, divide;
};

static bool is_float(dr_dtype dtype)
{
    return dtype != DR_U8 && dtype != DR_U16;
}

/* torch computes in float32 and rounds after each step to the type in hand: the result's when it widens, the
 * input's when it narrows. */
static float convert(const void *data, int channel, float v)
{
    const struct how *how = data;
    (void)channel;
    if (how->from == how->to || !how->scale || is_float(how->from) == is_float(how->to))
        return how->from == DR_U16 && how->to == DR_U8 && how->scale ? v / 256.0f : v;
    double most = how->from == DR_U8 ? 255.0 : 65535.0;
    if (is_float(how->to))
        return how->divide ? dr__float_as(how->to, v) / (float)most : dr__float_as(how->to, v) * (float)(1.0 / most);
    return dr__float_as(how->from, v * (float)(255.0 + 1.0 - 1e-3));
}

/* A volume as an image of one channel: a row for each row of voxels. */
static dr_view as_image(const dr_view *v)
{
    const int64_t *d = v->desc.dims;
    dr_desc flat = dr__desc_image(v->desc.dtype, d[0] * d[1] * d[2], d[3], 1);
    return dr__is_volume(&v->desc) ? dr__view_dense(&flat, v->data) : *v;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    struct how how = { in->desc.dtype, out->desc.dtype, c->scale, c->divide };
    (void)par;
    dr_view from = as_image(in), to = as_image(out);
    if (in->desc.dtype == out->desc.dtype)
        dr__view_copy(&to, &from);
    else
        dr__map_values(task->k, &from, &to, convert, &how);
    return DR_OK;
}

static void lut(const void *conf, int channels, dr_dtype in_dtype, const float *in, float *table)
{
    const struct conf *c = conf;
    struct how how = { in_dtype, dtypes[c->dtype], c->scale, c->divide };
    for (int i = 0; i < channels * 256; i++)
        table[i] = dr__float_as(how.to, convert(&how, 0, in[i]));
}

const dr_op_def dr__op_to_dtype = {
    .name = "to_dtype",
    .version = 1,
    .summary = "change the element type",
    .params = params,
    .conf_size = sizeof(struct conf),
    .flags = DR_OP_POINTWISE_U8,
    .kinds = DR__ON_IMAGES | DR__ON_VOLUMES,
    .plan = plan,
    .run = run,
    .lut = lut,
};
