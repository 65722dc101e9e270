/* random_gaussian_noise: add normal noise to a volume with probability p; its deviation is drawn from 0 to std.
 * float32; masks pass unchanged.
 *
 * Each block of voxels has a stream of its own (base/normals.h says how a stream becomes normal numbers). */
#include "base/normals.h"
#include "op/op_defs.h"
#include "op/volume/voxels.h"

enum { BLOCK = 4096 };

struct conf {
    double p;
    double mean;
    double std;
    dr__normals tables;
};

struct par {
    bool applied;
    double std;
    dr_rng rng;
};

static const dr_param params[] = {
    DR_REAL(struct conf, mean, "0", -1e30, 1e30, "mean of the noise"),
    DR_REAL(struct conf, std, "0.1", 0, 1e30, "largest standard deviation"),
    DR_REAL(struct conf, p, "0.1", 0, 1, "chance that a sample is changed"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, applied, NULL, "changed"),
    DR_REAL(struct par, std, NULL, 0, 1e30, "standard deviation"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    (void)err;
    dr__normals_init(&((struct conf *)conf)->tables);
    return DR_OK;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    (void)in, (void)err;
    p->applied = dr__rng_unit(rng) < c->p;
    p->std = dr__rng_uniform(rng, 0.0, c->std);
    if (!p->applied)
        p->std = 0.0;
    p->rng = *rng;
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    DR_TRY(dr__want_volume(in, in->kind == DR_KIND_VOLUME_MASK ? ~0u : 1u << DR_F32, "random_gaussian_noise", err));
    out->desc = *in;
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    (void)conf;
    return (((const struct par *)par)->applied ? 8.0 : 0.4) * (double)dr__voxels(in);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    const struct par *p = par;
    const float *src = (const float *)in->data;
    float *dst = (float *)out->data;
    int64_t n = dr__voxels(&in->desc);
    if (!p->applied || in->desc.kind == DR_KIND_VOLUME_MASK) {
        dr__view_copy(out, in);
        return DR_OK;
    }
    for (int64_t start = 0; start < n; start += BLOCK) {
        dr_rng rng = dr__rng_child(&p->rng, (uint32_t)(start / BLOCK));
        for (int64_t i = start; i < DR_MIN(n, start + BLOCK); i++)
            dst[i] = (float)(src[i] + (c->mean + p->std * dr__normals_next(&c->tables, &rng)));
    }
    return DR_OK;
}

const dr_op_def dr__op_random_gaussian_noise = {
    .name = "random_gaussian_noise",
    .version = 1,
    .summary = "add normal noise to a volume with probability p",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM,
    .kinds = DR__ON_VOLUMES,
    .init = init,
    .draw = draw,
    .passes = dr__passes_masks,
    .plan = plan,
    .cost = cost,
    .run = run,
};
