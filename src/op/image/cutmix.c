/* cutmix: a rectangle of each sample of a batch is replaced by its neighbour's, and the labels are mixed by area (Yun,
 * Han, Oh, Chun, Choe, Yoo: CutMix; ICCV 2019). */
#include <math.h>
#include <string.h>

#include "op/image/mix.h"
#include "op/op_defs.h"

struct par {
    int64_t x1, y1, x2, y2;
    double lam;
};

static const dr_param draws[] = {
    DR_INT(struct par, x1, NULL, 0, 1e9, "first column of the rectangle"),
    DR_INT(struct par, y1, NULL, 0, 1e9, "first row"),
    DR_INT(struct par, x2, NULL, 0, 1e9, "column after the last"),
    DR_INT(struct par, y2, NULL, 0, 1e9, "row after the last"),
    DR_REAL(struct par, lam, NULL, 0, 1, "share of the sample itself: what the rectangle leaves"),
    { 0 },
};

static dr_status plan(const void *conf, const dr_desc *in, dr_desc *out, size_t *scratch, dr_error *err)
{
    return dr__mix_plan(conf, "cutmix", in, out, scratch, err);
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, int64_t n_samples, void *par, dr_error *err)
{
    const dr__mix_conf *c = conf;
    struct par *p = par;
    int64_t w = dr__width(&in[0]), h = dr__height(&in[0]);
    (void)n_samples;
    if (w < 1 || h < 1)
        return dr__fail(err, DR_ERR_ARG, "cutmix: images are empty");
    double half = 0.5 * sqrt(1.0 - dr__rng_beta(rng, c->alpha, c->alpha));
    int64_t x = (int64_t)dr__rng_below(rng, (uint64_t)w), y = (int64_t)dr__rng_below(rng, (uint64_t)h);
    int64_t half_w = (int64_t)(half * (double)w), half_h = (int64_t)(half * (double)h);
    *p = (struct par){
        .x1 = DR_MAX(x - half_w, 0),
        .y1 = DR_MAX(y - half_h, 0),
        .x2 = DR_MIN(x + half_w, w),
        .y2 = DR_MIN(y + half_h, h),
    };
    p->lam = 1.0 - (double)((p->x2 - p->x1) * (p->y2 - p->y1)) / (double)(w * h);
    return DR_OK;
}

/* The description of one sample of a batch. */
static dr_desc sample_of(const dr_desc *batch)
{
    dr_desc d = *batch;
    d.n_dims--;
    memmove(d.dims, d.dims + 1, sizeof d.dims[0] * (size_t)d.n_dims);
    return d;
}

static void paste(const struct par *p, const dr_desc *d, uint8_t *to, const uint8_t *from)
{
    bool planar = d->layout == DR_LAYOUT_CHW;
    size_t row = dr__row_bytes(d), pixel = row / (size_t)dr__width(d);
    int64_t planes = planar ? dr__channels(d) : 1;
    for (int64_t k = 0; k < planes; k++)
        for (int64_t y = p->y1; y < p->y2; y++) {
            size_t at = (size_t)(k * dr__height(d) + y) * row + (size_t)p->x1 * pixel;
            memcpy(to + at, from + at, (size_t)(p->x2 - p->x1) * pixel);
        }
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    int64_t n = in[0].desc.dims[0];
    size_t bytes = dr__mix_stride(&in[0]);
    dr_desc sample = sample_of(&in[0].desc);
    uint8_t *x = out[0].data;
    if (x != in[0].data)
        memcpy(x, in[0].data, bytes * (size_t)n);
    if (n)
        memcpy(task->scratch, x + (size_t)(n - 1) * bytes, bytes);
    for (int64_t i = n - 1; i > 0; i--) /* downwards: the neighbour is still as it was */
        paste(p, &sample, x + (size_t)i * bytes, x + (size_t)(i - 1) * bytes);
    if (n)
        paste(p, &sample, x, task->scratch);
    return dr__mix_labels(task, "cutmix", p->lam, &in[1], &out[1]);
}

static const dr_batch_op_def batch = { .n_fields = 2, .plan = plan, .draw = draw, .run = run };

const dr_op_def dr__op_cutmix = {
    .name = "cutmix",
    .version = 1,
    .summary = "replace a rectangle of each sample of a batch by its neighbour's",
    .params = dr__mix_params,
    .draws = draws,
    .conf_size = sizeof(dr__mix_conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_BATCH | DR_OP_MOVES,
    .batch = &batch,
};
