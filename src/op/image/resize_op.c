/* resize: bring an image to a size, as PIL does (always antialiased) or torch; boxes follow.  HWC uint8 with 1, 3 or 4
 * channels; any element type for nearest neighbours.
 */
#include "op/box/boxes.h"
#include "op/image/rescale.h"
#include "op/op_defs.h"

struct conf {
    dr_ints size;
    int interpolation;
    dr_ints max_size;
    bool antialias;
    int backend;
};

static const dr_param params[] = {
    DR_INT_LIST(struct conf, size, NULL, 1, 1e6, 0, 2,
                "height and width; one number: the shorter side; null: max_size"),
    DR_CHOICE(struct conf, interpolation, "\"bilinear\"", dr__rescale_filters, "how pixels are sampled"),
    DR_INT_LIST(struct conf, max_size, "null", 1, 1e6, 0, 1, "most for the longer side, if size is one number or null"),
    DR_BOOLEAN(struct conf, antialias, "true", "for the tensor backend; on PIL images it is always on"),
    DR__BACKEND_PARAM(struct conf),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    if (!c->size.n && !c->max_size.n)
        return dr__fail(err, DR_ERR_ARG, "resize: max_size must be given if size is null");
    if (c->size.n == 2 && c->max_size.n)
        return dr__fail(err, DR_ERR_ARG, "resize: size must be one number if max_size is given, got two");
    if (c->size.n == 1 && c->max_size.n && c->max_size.v[0] <= c->size.v[0])
        return dr__fail(err, DR_ERR_ARG, "resize: max_size must be above size %lld, got %lld", (long long)c->size.v[0],
                        (long long)c->max_size.v[0]);
    return dr__rescale_check(c->interpolation, c->backend, "resize", err);
}

/* a * b / c, cut to a whole number as torchvision does in double. */
static int64_t share(int64_t a, int64_t b, int64_t c)
{
    return (int64_t)((double)(a * b) / (double)c);
}

static void output_size(const struct conf *c, int64_t w, int64_t h, int64_t *out_w, int64_t *out_h)
{
    int64_t brief = DR_MIN(w, h), wide = DR_MAX(w, h), most = c->max_size.n ? c->max_size.v[0] : INT64_MAX;
    int64_t new_brief, new_wide;
    if (c->size.n == 2) {
        *out_h = c->size.v[0];
        *out_w = c->size.v[1];
        return;
    }
    if (c->size.n) {
        new_brief = c->size.v[0];
        new_wide = share(new_brief, wide, brief);
        if (new_wide > most) {
            new_brief = share(most, new_brief, new_wide);
            new_wide = most;
        }
    } else {
        new_brief = share(most, brief, wide);
        new_wide = most;
    }
    *out_w = w <= h ? new_brief : new_wide;
    *out_h = w <= h ? new_wide : new_brief;
}

static dr__rescale rescale(const struct conf *c, const dr_desc *in)
{
    dr__rescale r = { .from = { 0, 0, dr__width(in), dr__height(in) }, .filter = c->interpolation };
    r.backend = c->backend;
    r.antialias = c->antialias;
    output_size(c, r.from.w, r.from.h, &r.w, &r.h);
    return r;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "resize", out, err);
    DR_TRY(dr__want_rescalable(in, c->interpolation, "resize", err));
    if (!dr__desc_known(in)) {
        bool fixed = c->size.n == 2;
        out->desc = dr__desc_resized(in, fixed ? c->size.v[0] : DR_UNKNOWN, fixed ? c->size.v[1] : DR_UNKNOWN);
        return DR_OK;
    }
    if (dr__width(in) < 1 || dr__height(in) < 1)
        return dr__fail(err, DR_ERR_ARG, "resize: image is empty");
    dr__rescale r = rescale(c, in);
    out->desc = dr__desc_resized(in, r.h, r.w);
    return dr__rescale_scratch(&r, in, "resize", &out->scratch, err);
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    dr__rescale r = rescale(conf, in);
    (void)par;
    return dr__rescale_cost(&r, in);
}

static dr_status resize_boxes(dr_task *task, const dr_view *in, dr_view *out)
{
    const dr_desc *frame = NULL;
    DR_TRY(dr__boxes_frame(task, "resize", &frame));
    dr__rescale r = rescale(task->conf, frame);
    dr__boxes_scale(in, out, (double)r.w / (double)r.from.w, (double)r.h / (double)r.from.h);
    return DR_OK;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    if (dr__is_points(&in->desc))
        return resize_boxes(task, in, out);
    dr__rescale r = rescale(task->conf, &in->desc);
    (void)par;
    dr__rescale_run(task, &r, in, out);
    return DR_OK;
}

static dr_status rows(dr_task *task, const void *par, const dr_view *in, const dr_desc *out, dr__row_sink *sink)
{
    dr__rescale r = rescale(task->conf, &in->desc);
    (void)par, (void)out;
    dr__rescale_rows(task, &r, in, sink);
    return DR_OK;
}

static dr_status feed(dr_task *task, const void *par, const dr_desc *in, const dr_desc *out, dr__row_sink *sink,
                      struct dr__bands **bands)
{
    dr__rescale r = rescale(task->conf, in);
    (void)par, (void)out;
    *bands = dr__rescale_feed(task, &r, in, sink);
    return DR_OK;
}

const dr_op_def dr__op_resize = {
    .name = "resize",
    .version = 1,
    .summary = "bring an image to a size",
    .params = params,
    .conf_size = sizeof(struct conf),
    .init = init,
    .flags = DR_OP_WINDOW | DR_OP_RESAMPLE | DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .plan = plan,
    .cost = cost,
    .run = run,
    .rows = rows,
    .feed = feed,
};
