/* random_brightness: multiply a volume by a factor from 1 - factor to 1 + factor, with probability p.  float32; masks
 * pass unchanged. */
#include "op/op_defs.h"
#include "op/volume/voxels.h"

struct conf {
    double p;
    double factor;
};

struct par {
    bool applied;
    double scale;
};

static const dr_param params[] = {
    DR_REAL(struct conf, factor, "0.3", 0, 1, "the values are multiplied by 1 - factor to 1 + factor"),
    DR_REAL(struct conf, p, "0.1", 0, 1, "chance that a sample is changed"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, applied, NULL, "changed"),
    DR_REAL(struct par, scale, NULL, 0, 2, "what the values are multiplied by"),
    { 0 },
};

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    (void)in, (void)err;
    p->applied = dr__rng_unit(rng) < c->p;
    p->scale = dr__rng_uniform(rng, 1.0 - c->factor, 1.0 + c->factor);
    if (!p->applied)
        p->scale = 1.0;
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    (void)conf, (void)par;
    DR_TRY(dr__want_volume(in, in->kind == DR_KIND_VOLUME_MASK ? ~0u : 1u << DR_F32, "random_brightness", err));
    out->desc = *in;
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    (void)conf;
    return (((const struct par *)par)->applied ? 0.6 : 0.4) * (double)dr__voxels(in);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    const float *src = (const float *)in->data;
    float *dst = (float *)out->data, scale = (float)p->scale;
    (void)task;
    if (!p->applied || in->desc.kind == DR_KIND_VOLUME_MASK) {
        dr__view_copy(out, in);
        return DR_OK;
    }
    for (int64_t i = 0, n = dr__voxels(&in->desc); i < n; i++)
        dst[i] = src[i] * scale;
    return DR_OK;
}

const dr_op_def dr__op_random_brightness = {
    .name = "random_brightness",
    .version = 1,
    .summary = "multiply a volume by a random factor with probability p",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM,
    .kinds = DR__ON_VOLUMES,
    .draw = draw,
    .passes = dr__passes_masks,
    .plan = plan,
    .cost = cost,
    .run = run,
};
