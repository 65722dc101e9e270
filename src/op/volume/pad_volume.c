/* pad_volume: make a volume at least so large, half of what is missing before it and the rest behind.  Any element
 * type. */
#include <string.h>

#include "op/image/geometry.h"
#include "op/op_defs.h"
#include "op/volume/voxels.h"

enum { EDGE, CONSTANT };

struct conf {
    dr_ints size;
    int mode;
    double fill;
    int64_t least[3];
};

static const char *const modes[] = { "edge", "constant", NULL };

static const dr_param params[] = {
    DR_INT_LIST(struct conf, size, NULL, 1, 1e6, 1, 3, "least depth, height and width, or one number for all"),
    DR_CHOICE(struct conf, mode, "\"edge\"", modes, "what is added: the outermost voxels again, or fill"),
    DR_REAL(struct conf, fill, "0", -1e30, 1e30, "value for constant; masks get 0"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    return dr__volume_size(&c->size, c->least, "pad_volume", err);
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    DR_TRY(dr__want_volume(in, ~0u, "pad_volume", err));
    out->desc = *in;
    for (int i = 0; i < 3; i++)
        out->desc.dims[1 + i] = in->dims[1 + i] < 0 ? DR_UNKNOWN : DR_MAX(in->dims[1 + i], c->least[i]);
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    dr_plan to = { 0 };
    dr_error err;
    plan(conf, par, in, &to, &err);
    return 0.3 * (double)dr__voxels(&to.desc) * (double)dr_dtype_size(in->dtype);
}

/* `n` elements of one value. */
static void repeat(uint8_t *dst, const uint8_t *value, size_t element, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * element, value, element);
}

/* What a padding does along one axis. */
struct axis {
    int64_t before, extent, to;
};

static struct axis axis_of(const dr_desc *in, const dr_desc *out, int i)
{
    struct axis a = { .extent = in->dims[1 + i], .to = out->dims[1 + i] };
    a.before = (a.to - a.extent) / 2;
    return a;
}

/* Where position i of the padded axis is read; false: in the border. */
static bool inside(const struct axis *a, int64_t i, int64_t *from)
{
    int64_t at = i - a->before;
    *from = at < 0 ? 0 : at >= a->extent ? a->extent - 1 : at;
    return at == *from;
}

static void pad_row(const struct axis *x, const uint8_t *src, const uint8_t *fill, size_t element, uint8_t *dst)
{
    size_t before = (size_t)x->before, extent = (size_t)x->extent, after = (size_t)x->to - before - extent;
    repeat(dst, fill ? fill : src, element, before);
    memcpy(dst + before * element, src, extent * element);
    repeat(dst + (before + extent) * element, fill ? fill : src + (extent - 1) * element, element, after);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    const int64_t *dims = in->desc.dims;
    size_t element = dr_dtype_size(in->desc.dtype), row = (size_t)out->desc.dims[3] * element;
    struct axis z = axis_of(&in->desc, &out->desc, 0), y = axis_of(&in->desc, &out->desc, 1),
                x = axis_of(&in->desc, &out->desc, 2);
    uint8_t fill[8], *dst = out->data;
    (void)par;
    dr__element_store(in->desc.dtype, fill, in->desc.kind == DR_KIND_VOLUME_MASK ? 0 : c->fill);
    for (int64_t ch = 0; ch < dims[0]; ch++)
        for (int64_t k = 0; k < z.to; k++)
            for (int64_t j = 0; j < y.to; j++, dst += row) {
                int64_t from_z, from_y;
                bool in_z = inside(&z, k, &from_z), in_y = inside(&y, j, &from_y);
                const uint8_t *src =
                    in->data + (size_t)(((ch * dims[1] + from_z) * dims[2] + from_y) * dims[3]) * element;
                if (c->mode == CONSTANT && !(in_z && in_y))
                    repeat(dst, fill, element, (size_t)x.to);
                else
                    pad_row(&x, src, c->mode == CONSTANT ? fill : NULL, element, dst);
            }
    return DR_OK;
}

const dr_op_def dr__op_pad_volume = {
    .name = "pad_volume",
    .version = 1,
    .summary = "make a volume at least so large",
    .flags = DR_OP_MOVES,
    .kinds = DR__ON_VOXELS,
    .params = params,
    .conf_size = sizeof(struct conf),
    .init = init,
    .plan = plan,
    .cost = cost,
    .run = run,
};
