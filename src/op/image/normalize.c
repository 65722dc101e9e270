/* normalize: (x - mean) / std by channel.
 *
 * Floats keep their type and are rounded to it after each of the two steps, as torch does.  uint8 images first become
 * float32 exactly as by to_dtype("float32", scale=true), so that mean and std always speak of values from 0 to 1.
 * HWC; masks pass unchanged. */
#include "op/image/numeric.h"
#include "op/op_defs.h"

struct conf {
    dr_reals mean;
    dr_reals std;
    bool inplace;
};

static const dr_param params[] = {
    DR_REAL_LIST(struct conf, mean, NULL, -1e30, 1e30, 1, 16, "one, or one per channel"),
    DR_REAL_LIST(struct conf, std, NULL, -1e30, 1e30, 1, 16, "one, or one per channel; not 0"),
    DR_BOOLEAN(struct conf, inplace, "false", "accepted for torchvision's sake; changes nothing"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    for (int i = 0; i < c->std.n; i++)
        if ((float)c->std.v[i] == 0.0f)
            return dr__fail(err, DR_ERR_ARG, "normalize: std[%d] must not be 0, got %g", i, c->std.v[i]);
    return DR_OK;
}

static dr_status check_count(const dr_reals *list, const char *name, int64_t channels, dr_error *err)
{
    if (list->n == 1 || channels < 0 || list->n == channels)
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "normalize: %s must have 1 value or %lld, one for each channel, got %d", name,
                    (long long)channels, list->n);
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    out->desc = *in;
    if (in->kind == DR_KIND_MASK)
        return DR_OK;
    DR_TRY(dr__want_image(in, DR__NUMERIC_TYPES & ~(1u << DR_U16), "normalize", err));
    if (dr__channels(in) > DR_PARAM_LIST)
        return dr__fail(err, DR_ERR_ARG, "normalize: image must have at most %d channels, got %lld", DR_PARAM_LIST,
                        (long long)dr__channels(in));
    DR_TRY(check_count(&c->mean, "mean", dr__channels(in), err));
    DR_TRY(check_count(&c->std, "std", dr__channels(in), err));
    if (in->dtype == DR_U8)
        out->desc.dtype = DR_F32;
    return DR_OK;
}

/* mean and std as the type in hand holds them, and the step before. */
struct how {
    dr_dtype dtype;
    float scale;
    float mean[DR_PARAM_LIST], std[DR_PARAM_LIST];
};

static void prepare(const struct conf *c, dr_dtype from, int channels, struct how *how)
{
    how->dtype = from == DR_U8 ? DR_F32 : from;
    how->scale = from == DR_U8 ? (float)(1.0 / 255.0) : 1.0f;
    for (int k = 0; k < DR_MIN(channels, DR_PARAM_LIST); k++) {
        how->mean[k] = dr__float_as(how->dtype, (float)c->mean.v[c->mean.n > 1 ? k : 0]);
        how->std[k] = dr__float_as(how->dtype, (float)c->std.v[c->std.n > 1 ? k : 0]);
    }
}

static float value(const void *data, int channel, float v)
{
    const struct how *how = data;
    float centred = dr__float_as(how->dtype, v * how->scale - how->mean[channel]);
    return dr__float_as(how->dtype, centred / how->std[channel]);
}

/* float32 to float32, the usual case after to_dtype: no rounding between the steps, so a plain loop does. */
static void run_f32(const struct how *how, const dr_view *in, dr_view *out)
{
    int channels = (int)dr__channels(&in->desc);
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        const float *src = (const float *)(in->data + y * in->stride);
        float *dst = (float *)(out->data + y * out->stride);
        for (int64_t x = 0; x < dr__width(&in->desc); x++, src += channels, dst += channels)
            for (int k = 0; k < channels; k++)
                dst[k] = (src[k] - how->mean[k]) / how->std[k];
    }
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    struct how how;
    (void)par;
    if (in->desc.kind == DR_KIND_MASK) {
        dr__view_copy(out, in);
        return DR_OK;
    }
    prepare(task->conf, in->desc.dtype, (int)dr__channels(&in->desc), &how);
    if (in->desc.dtype == DR_F32)
        run_f32(&how, in, out);
    else
        dr__map_values(task->k, in, out, value, &how);
    return DR_OK;
}

static void lut(const void *conf, int channels, dr_dtype in_dtype, const float *in, float *table)
{
    struct how how;
    prepare(conf, in_dtype, channels, &how);
    for (int i = 0; i < channels * 256; i++)
        table[i] = value(&how, i / 256, in[i]);
}

const dr_op_def dr__op_normalize = {
    .name = "normalize",
    .version = 1,
    .summary = "subtract the mean and divide by the standard deviation",
    .params = params,
    .conf_size = sizeof(struct conf),
    .flags = DR_OP_POINTWISE_U8,
    .kinds = DR__ON_IMAGES,
    .init = init,
    .plan = plan,
    .run = run,
    .lut = lut,
};
