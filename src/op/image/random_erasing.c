/* random_erasing: with probability p, overwrite a random rectangle.  HWC, any element type; masks pass.
 *
 * The values are one for all channels, one for each, or (value null, torchvision's "random") normal noise.  Values that
 * an integer type cannot hold are kept within its range. */
#include "op/image/box_draw.h"
#include "op/image/geometry.h"
#include "op/op_defs.h"

#include <string.h>

struct conf {
    double p;
    dr_reals scale;
    dr_reals ratio;
    dr_reals value;
    bool inplace;
    dr__box_range range;
};

struct par {
    bool erase;
    int64_t top, left, height, width;
    int64_t noise; /* names the stream of noise, so that run itself stays without chance */
};

static const dr_param params[] = {
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance that a sample is treated"),
    DR_REAL_LIST(struct conf, scale, "[0.02, 0.33]", 0, 1, 2, 2, "range of the rectangle's part of the area"),
    DR_REAL_LIST(struct conf, ratio, "[0.3, 3.3]", 0, 1e6, 2, 2, "range of its height / width"),
    DR_REAL_LIST(struct conf, value, "0", -1e30, 1e30, 0, 16, "one, or one per channel; null: normal noise"),
    DR_BOOLEAN(struct conf, inplace, "false", "accepted for torchvision's sake; changes nothing"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, erase, NULL, "treated"),
    DR_INT(struct par, top, NULL, 0, 1e9, "first row"),
    DR_INT(struct par, left, NULL, 0, 1e9, "first column"),
    DR_INT(struct par, height, NULL, 0, 1e9, "rows"),
    DR_INT(struct par, width, NULL, 0, 1e9, "columns"),
    DR_INT(struct par, noise, NULL, 0, 9e15, "name of the noise"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    return dr__box_range_of(&c->scale, &c->ratio, "random_erasing", &c->range, err);
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    int64_t w = dr__width(in), h = dr__height(in);
    (void)err;
    *p = (struct par){ 0 };
    bool chosen = dr__rng_unit(rng) < c->p;
    for (int i = 0; i < 10 && chosen && !p->erase; i++) {
        dr__box_draw(&c->range, rng, w, h, &p->height, &p->width);
        p->erase = p->height < h && p->width < w;
    }
    if (!p->erase) { /* not chosen, or no rectangle fitted: the image stays as it is */
        *p = (struct par){ 0 };
        return DR_OK;
    }
    p->top = (int64_t)dr__rng_below(rng, (uint64_t)(h - p->height + 1));
    p->left = (int64_t)dr__rng_below(rng, (uint64_t)(w - p->width + 1));
    p->noise = (int64_t)dr__rng_below(rng, (uint64_t)1 << 52);
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    int64_t channels = dr__channels(in);
    (void)par;
    DR_TRY(dr__want_image(in, ~0u, "random_erasing", err));
    out->desc = *in;
    if (in->kind == DR_KIND_MASK || channels < 0 || c->value.n <= 1 || c->value.n == channels)
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "random_erasing: value must have 1 number or %lld, one for each channel, got %d",
                    (long long)channels, c->value.n);
}

static void erase_row(const struct conf *c, dr_rng *noise, const dr_desc *d, uint8_t *at, int64_t width)
{
    size_t element = dr_dtype_size(d->dtype);
    int64_t channels = dr__channels(d);
    for (int64_t x = 0; x < width; x++)
        for (int64_t k = 0; k < channels; k++, at += element) {
            double v = c->value.n ? c->value.v[c->value.n > 1 ? k : 0] : dr__rng_normal(noise);
            dr__element_store(d->dtype, at, (float)v); /* torch holds the values as float32 */
        }
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    dr_rng noise = dr__rng_open(&(dr__rng_name){ .seed = (uint64_t)p->noise }, 0);
    dr__view_copy(out, in);
    if (in->desc.kind == DR_KIND_MASK || !p->erase)
        return DR_OK;
    for (int64_t y = p->top; y < p->top + p->height; y++)
        erase_row(task->conf, &noise, &in->desc,
                  out->data + y * out->stride + p->left * (int64_t)dr__pixel_bytes(&in->desc), p->width);
    return DR_OK;
}

const dr_op_def dr__op_random_erasing = {
    .name = "random_erasing",
    .version = 1,
    .summary = "overwrite a random rectangle with probability p",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM,
    .kinds = DR__ON_IMAGES,
    .init = init,
    .draw = draw,
    .plan = plan,
    .run = run,
};
