/* mixup: each sample of a batch becomes a weighted sum of itself and its neighbour, the labels likewise (Zhang, Cisse,
 * Dauphin, Lopez-Paz: mixup: Beyond empirical risk minimization; ICLR 2018). */
#include <string.h>

#include "op/image/mix.h"
#include "op/op_defs.h"

struct par {
    double lam;
};

static const dr_param draws[] = {
    DR_REAL(struct par, lam, NULL, 0, 1, "share of the sample itself"),
    { 0 },
};

static dr_status plan(const void *conf, const dr_desc *in, dr_desc *out, size_t *scratch, dr_error *err)
{
    return dr__mix_plan(conf, "mixup", in, out, scratch, err);
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, int64_t n_samples, void *par, dr_error *err)
{
    const dr__mix_conf *c = conf;
    (void)in, (void)n_samples, (void)err;
    ((struct par *)par)->lam = dr__rng_beta(rng, c->alpha, c->alpha);
    return DR_OK;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    int64_t n = in[0].desc.dims[0];
    size_t bytes = dr__mix_stride(&in[0]), floats = bytes / sizeof(float);
    float *x = (float *)(void *)out[0].data, *last = (float *)(void *)task->scratch;
    if (out[0].data != in[0].data)
        memcpy(out[0].data, in[0].data, bytes * (size_t)n);
    if (n)
        memcpy(last, x + (size_t)(n - 1) * floats, bytes);
    for (int64_t i = n - 1; i > 0; i--) /* downwards: the neighbour is still as it was */
        dr__mix_floats(x + (size_t)i * floats, x + (size_t)(i - 1) * floats, p->lam, floats);
    if (n)
        dr__mix_floats(x, last, p->lam, floats);
    return dr__mix_labels(task, "mixup", p->lam, &in[1], &out[1]);
}

static const dr_batch_op_def batch = { .n_fields = 2, .plan = plan, .draw = draw, .run = run };

const dr_op_def dr__op_mixup = {
    .name = "mixup",
    .version = 1,
    .summary = "mix each sample of a batch with its neighbour",
    .params = dr__mix_params,
    .draws = draws,
    .conf_size = sizeof(dr__mix_conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_BATCH | DR_OP_MOVES,
    .batch = &batch,
};
