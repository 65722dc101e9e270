/* normalize_intensity: clip the values of a volume, take the mean away and divide by the deviation.  Any number type;
 * the result is float32.  Masks pass unchanged. */
#include <math.h>

#include "op/op_defs.h"
#include "op/volume/voxels.h"

struct conf {
    dr_reals clip;
    double mean;
    double std;
};

static const dr_param params[] = {
    DR_REAL_LIST(struct conf, clip, "null", -1e30, 1e30, 0, 2, "least and most value; null: as they are"),
    DR_REAL(struct conf, mean, "0", -1e30, 1e30, "taken away after clipping"),
    DR_REAL(struct conf, std, "1", 1e-30, 1e30, "divided by"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    if (c->clip.n == 1 || (c->clip.n == 2 && !(c->clip.v[0] <= c->clip.v[1])))
        return dr__fail(err, DR_ERR_ARG, "normalize_intensity: clip must be two numbers, the least first");
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    DR_TRY(dr__want_volume(in, DR__VOXEL_TYPES, "normalize_intensity", err));
    out->desc = *in;
    if (in->kind == DR_KIND_VOLUME)
        out->desc.dtype = DR_F32;
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    (void)conf, (void)par;
    return 2.0 * (double)dr__voxels(in);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    float lo = -INFINITY, hi = INFINITY, mean = (float)c->mean, std = (float)c->std;
    float *v = (float *)out->data;
    size_t n = (size_t)dr__voxels(&in->desc);
    (void)par;
    if (in->desc.kind == DR_KIND_VOLUME_MASK) {
        dr__view_copy(out, in);
        return DR_OK;
    }
    if (c->clip.n == 2)
        lo = (float)c->clip.v[0], hi = (float)c->clip.v[1];
    dr__voxels_load(in->desc.dtype, in->data, v, n);
    for (size_t i = 0; i < n; i++) {
        float x = v[i] < lo ? lo : v[i];
        x = x > hi ? hi : x;
        v[i] = (x - mean) / std;
    }
    return DR_OK;
}

const dr_op_def dr__op_normalize_intensity = {
    .name = "normalize_intensity",
    .version = 1,
    .summary = "clip the values of a volume, then (value - mean) / std",
    .params = params,
    .conf_size = sizeof(struct conf),
    .init = init,
    .passes = dr__passes_masks,
    .kinds = DR__ON_VOLUMES,
    .plan = plan,
    .cost = cost,
    .run = run,
};
