/* random_flip_volume: mirror a volume along each of some axes, each with probability p.  Any element type. */
#include <string.h>

#include "op/op_defs.h"
#include "op/volume/voxels.h"

struct conf {
    double p;
    dr_ints axes;
};

struct par {
    bool depth, height, width;
};

static const dr_param params[] = {
    DR_REAL(struct conf, p, "0.3333333333333333", 0, 1, "chance of each axis"),
    DR_INT_LIST(struct conf, axes, "[0, 1, 2]", 0, 2, 1, 3, "axes that may be mirrored: 0 depth, 1 height, 2 width"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, depth, NULL, "mirrored along the depth"),
    DR_BOOLEAN(struct par, height, NULL, "along the height"),
    DR_BOOLEAN(struct par, width, NULL, "along the width"),
    { 0 },
};

static bool allowed(const struct conf *c, int axis)
{
    for (int i = 0; i < c->axes.n; i++)
        if (c->axes.v[i] == axis)
            return true;
    return false;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    bool flips[3];
    (void)in, (void)err;
    for (int i = 0; i < 3; i++)
        flips[i] = dr__rng_unit(rng) < c->p && allowed(c, i);
    *(struct par *)par = (struct par){ flips[0], flips[1], flips[2] };
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    DR_TRY(dr__want_volume(in, ~0u, "random_flip_volume", err));
    out->desc = *in;
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const struct par *p = par;
    (void)conf;
    return (p->width ? 1.0 : 0.25) * (double)dr__voxels(in) * (double)dr_dtype_size(in->dtype) / 4;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    const int64_t *d = in->desc.dims;
    size_t element = dr_dtype_size(in->desc.dtype), row = (size_t)d[3] * element;
    uint8_t *dst = out->data;
    for (int64_t c = 0; c < d[0]; c++)
        for (int64_t z = 0; z < d[1]; z++)
            for (int64_t y = 0; y < d[2]; y++, dst += row) {
                int64_t from_z = p->depth ? d[1] - 1 - z : z, from_y = p->height ? d[2] - 1 - y : y;
                const uint8_t *src = in->data + (size_t)((c * d[1] + from_z) * d[2] + from_y) * row;
                if (p->width)
                    task->k->hflip_row(dst, src, (size_t)d[3], element);
                else
                    memcpy(dst, src, row);
            }
    return DR_OK;
}

const dr_op_def dr__op_random_flip_volume = {
    .name = "random_flip_volume",
    .version = 1,
    .summary = "mirror a volume along each axis with probability p",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_MOVES,
    .kinds = DR__ON_VOXELS,
    .draw = draw,
    .plan = plan,
    .cost = cost,
    .run = run,
};
