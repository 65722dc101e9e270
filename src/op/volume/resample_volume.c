/* resample_volume: a volume on another grid: to a spacing of its voxels, or to a size.  Volumes are interpolated
 * linearly along each axis and become float32; masks take the nearest voxel and keep their type.
 *
 * One output slice at a time: two slices of the input become one (z), two of its rows become one (y), pairs of that row
 * become the output's (x); each step is a + (b - a) * weight in float32. */
#include <string.h>

#include "base/alloc.h"
#include "base/fmath.h"
#include "op/op_defs.h"
#include "op/volume/voxels.h"

struct conf {
    dr_reals spacing;
    dr_ints size;
    bool align_corners;
    int64_t to[3];
};

static const dr_param params[] = {
    DR_REAL_LIST(struct conf, spacing, "null", 1e-6, 1e6, 0, 3,
                 "distance of voxels wanted along depth, height and width, in the file's unit"),
    DR_INT_LIST(struct conf, size, "null", 1, 1e6, 0, 3, "or the size wanted: depth, height and width"),
    DR_BOOLEAN(struct conf, align_corners, "true",
               "the outermost voxels stay where they are (as scipy's zoom); else voxels are cells with an extent"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    if (!c->spacing.n == !c->size.n || c->spacing.n == 2)
        return dr__fail(err, DR_ERR_ARG, "resample_volume: either spacing or size must be given, one or three numbers");
    return c->size.n ? dr__volume_size(&c->size, c->to, "resample_volume", err) : DR_OK;
}

/* Extent and spacing of one axis after the op. */
static dr_status plan_axis(const struct conf *c, const dr_desc *in, int i, dr_desc *out, dr_error *err)
{
    int64_t extent = in->dims[1 + i];
    if (c->size.n) {
        out->dims[1 + i] = c->to[i];
        out->spacing[i] = extent < 0 ? 0 : in->spacing[i] * (double)extent / (double)c->to[i];
        return DR_OK;
    }
    out->dims[1 + i] = DR_UNKNOWN;
    out->spacing[i] = c->spacing.v[c->spacing.n == 3 ? i : 0];
    if (extent < 0)
        return DR_OK;
    if (!(in->spacing[i] > 0))
        return dr__fail(err, DR_ERR_ARG,
                        "resample_volume: the spacing of this volume is not known along axis %d; give a size", i);
    double extent_to = dr__round_even((double)extent * (in->spacing[i] / out->spacing[i]));
    if (!(extent_to < 1e6))
        return dr__fail(err, DR_ERR_LIMIT, "resample_volume: axis %d must have at most 1000000 voxels, got %g", i,
                        extent_to);
    out->dims[1 + i] = extent_to < 1 ? 1 : (int64_t)extent_to;
    return DR_OK;
}

/* Where the values of one output axis come from. */
struct tap {
    int32_t at; /* the first of two voxels; the only one when weight is 0 */
    float weight;
};

struct scratch {
    float *slice, *row;
    struct tap *x;
    size_t bytes;
};

static struct scratch lay_out(const dr_desc *in, const dr_desc *out, uint8_t *at)
{
    size_t slice = ((size_t)(in->dims[2] * in->dims[3]) * sizeof(float) + 63) & ~(size_t)63;
    size_t row = ((size_t)in->dims[3] * sizeof(float) + 63) & ~(size_t)63;
    return (struct scratch){
        .slice = (float *)at,
        .row = (float *)(at + 2 * slice),
        .x = (struct tap *)(at + 2 * slice + 2 * row),
        .bytes = 2 * slice + 2 * row + (size_t)out->dims[3] * sizeof(struct tap),
    };
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)par;
    DR_TRY(dr__want_volume(in, in->kind == DR_KIND_VOLUME_MASK ? ~0u : DR__VOXEL_TYPES, "resample_volume", err));
    out->desc = *in;
    for (int i = 0; i < 3; i++)
        DR_TRY(plan_axis(conf, in, i, &out->desc, err));
    if (in->kind == DR_KIND_VOLUME)
        out->desc.dtype = DR_F32;
    size_t bytes;
    if (dr__desc_bytes_dense(in, &bytes) && dr__desc_bytes_dense(&out->desc, &bytes))
        out->scratch = lay_out(in, &out->desc, (uint8_t *)64).bytes;
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    dr_plan to = { 0 };
    dr_error err;
    if (plan(conf, par, in, &to, &err) != DR_OK)
        return 0;
    const int64_t *a = in->dims, *b = to.desc.dims;
    double slices = (double)(b[0] * b[1]), all = (double)dr__voxels(&to.desc);
    if (in->kind == DR_KIND_VOLUME_MASK)
        return 0.7 * all;
    return 1.5 * all + 0.5 * slices * (double)(b[2] * a[3]) + slices * (double)(a[2] * a[3]);
}

/* The place in the input, in voxels, of voxel i of the output. */
static double place(int64_t i, int64_t from, int64_t to, bool align)
{
    if (align)
        return to > 1 ? (double)i * ((double)(from - 1) / (double)(to - 1)) : 0.0;
    double at = ((double)i + 0.5) * ((double)from / (double)to) - 0.5;
    return at < 0 ? 0.0 : at;
}

static struct tap tap_of(int64_t i, int64_t from, int64_t to, bool align)
{
    double at = place(i, from, to, align);
    int64_t first = DR_MIN((int64_t)at, from - 1);
    return (struct tap){ (int32_t)first, first == from - 1 ? 0.0f : (float)(at - (double)first) };
}

static int64_t nearest(int64_t i, int64_t from, int64_t to, bool align)
{
    return DR_MIN((int64_t)(place(i, from, to, align) + 0.5), from - 1);
}

static void mix(float *dst, const float *a, const float *b, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] + (b[i] - a[i]) * weight;
}

/* Slice `at` of the input and the next, made one. */
static const float *mix_slices(const dr_view *in, int64_t channel, struct tap z, struct scratch *s)
{
    const int64_t *d = in->desc.dims;
    size_t n = (size_t)(d[2] * d[3]), element = dr_dtype_size(in->desc.dtype);
    const uint8_t *first = in->data + (size_t)(channel * d[1] + z.at) * n * element;
    bool plain = in->desc.dtype == DR_F32;
    float *spare = s->slice + (s->row - s->slice) / 2;
    if (!plain)
        dr__voxels_load(in->desc.dtype, first, s->slice, n);
    const float *a = plain ? (const float *)first : s->slice;
    if (z.weight == 0)
        return a;
    if (!plain)
        dr__voxels_load(in->desc.dtype, first + n * element, spare, n);
    mix(s->slice, a, plain ? (const float *)first + n : spare, z.weight, n);
    return s->slice;
}

static void mix_row(float *dst, const float *row, const struct tap *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float a = row[x[i].at];
        dst[i] = x[i].weight == 0 ? a : a + (row[x[i].at + 1] - a) * x[i].weight;
    }
}

static void interpolate(const struct conf *c, const dr_view *in, dr_view *out, struct scratch *s)
{
    const int64_t *from = in->desc.dims, *to = out->desc.dims;
    float *dst = (float *)out->data;
    size_t w = (size_t)from[3];
    for (int64_t i = 0; i < to[3]; i++)
        s->x[i] = tap_of(i, from[3], to[3], c->align_corners);
    for (int64_t ch = 0; ch < to[0]; ch++)
        for (int64_t k = 0; k < to[1]; k++) {
            const float *slice = mix_slices(in, ch, tap_of(k, from[1], to[1], c->align_corners), s);
            for (int64_t j = 0; j < to[2]; j++, dst += to[3]) {
                struct tap y = tap_of(j, from[2], to[2], c->align_corners);
                const float *row = slice + (size_t)y.at * w;
                if (y.weight != 0) {
                    mix(s->row, row, row + w, y.weight, w);
                    row = s->row;
                }
                mix_row(dst, row, s->x, (size_t)to[3]);
            }
        }
}

static void pick_row(uint8_t *dst, const uint8_t *src, const struct tap *x, size_t n, size_t element)
{
    if (element == 1)
        for (size_t i = 0; i < n; i++)
            dst[i] = src[x[i].at];
    else
        for (size_t i = 0; i < n; i++)
            memcpy(dst + i * element, src + (size_t)x[i].at * element, element);
}

static void pick(const struct conf *c, const dr_view *in, dr_view *out, struct scratch *s)
{
    const int64_t *from = in->desc.dims, *to = out->desc.dims;
    size_t element = dr_dtype_size(in->desc.dtype), row = (size_t)to[3] * element;
    uint8_t *dst = out->data;
    for (int64_t i = 0; i < to[3]; i++)
        s->x[i] = (struct tap){ .at = (int32_t)nearest(i, from[3], to[3], c->align_corners) };
    for (int64_t ch = 0; ch < to[0]; ch++)
        for (int64_t k = 0; k < to[1]; k++) {
            int64_t z = ch * from[1] + nearest(k, from[1], to[1], c->align_corners);
            for (int64_t j = 0; j < to[2]; j++, dst += row) {
                int64_t y = nearest(j, from[2], to[2], c->align_corners);
                pick_row(dst, in->data + (size_t)((z * from[2] + y) * from[3]) * element, s->x, (size_t)to[3], element);
            }
        }
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    struct scratch s = lay_out(&in->desc, &out->desc, task->scratch);
    (void)par;
    if (in->desc.kind == DR_KIND_VOLUME_MASK)
        pick(task->conf, in, out, &s);
    else
        interpolate(task->conf, in, out, &s);
    return DR_OK;
}

const dr_op_def dr__op_resample_volume = {
    .name = "resample_volume",
    .version = 1,
    .summary = "a volume on another grid: to a spacing or a size",
    .flags = DR_OP_MOVES,
    .kinds = DR__ON_VOXELS,
    .params = params,
    .conf_size = sizeof(struct conf),
    .init = init,
    .plan = plan,
    .cost = cost,
    .run = run,
};
