/* random_iou_crop: cut a rectangle that overlaps well with at least one box (SSD's sampling); boxes follow.  HWC, any
 * element type.
 *
 * Boxes whose centre is cut away become 0, 0, 0, 0: sanitize_bounding_boxes drops them.  Boxes are known before images
 * are decoded, so that only what is cut out has to be. */
#include <math.h>

#include "op/box/boxes.h"
#include "op/image/geometry.h"
#include "op/op_defs.h"

enum { MOST_TRIES = 40000 }; /* of all overlaps together; then the image stays whole, as if that had been drawn */

struct conf {
    double min_scale, max_scale, min_aspect_ratio, max_aspect_ratio;
    dr_reals sampler_options;
    int64_t trials;
};

struct par {
    bool cropped;
    dr_rect rect;
    dr_rng rng;
};

static const dr_param params[] = {
    DR_REAL(struct conf, min_scale, "0.3", 0.001, 1, "least width and height, in the image's"),
    DR_REAL(struct conf, max_scale, "1", 0.001, 1, "most width and height, in the image's"),
    DR_REAL(struct conf, min_aspect_ratio, "0.5", 1e-3, 1e3, "least width / height"),
    DR_REAL(struct conf, max_aspect_ratio, "2", 1e-3, 1e3, "most width / height"),
    DR_REAL_LIST(struct conf, sampler_options, "[0, 0.1, 0.3, 0.5, 0.7, 0.9, 1]", 0, 1e6, 1, 16,
                 "overlaps (IoU) of which one is drawn and that a box must have with the part; 1 or more: all of it"),
    DR_INT(struct conf, trials, "40", 1, 1e6, "tries before another overlap is drawn"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, cropped, NULL, "cut"),
    { "left", DR_P_INT, offsetof(struct par, rect.x), NULL, 0, 1e9, 0, 0, NULL, "first column" },
    { "top", DR_P_INT, offsetof(struct par, rect.y), NULL, 0, 1e9, 0, 0, NULL, "first row" },
    { "width", DR_P_INT, offsetof(struct par, rect.w), NULL, 1, 1e9, 0, 0, NULL, "columns" },
    { "height", DR_P_INT, offsetof(struct par, rect.h), NULL, 1, 1e9, 0, 0, NULL, "rows" },
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    if (c->min_scale > c->max_scale || c->min_aspect_ratio > c->max_aspect_ratio)
        return dr__fail(
            err, DR_ERR_ARG,
            "random_iou_crop: min_scale and min_aspect_ratio must not be above max_scale and max_aspect_ratio");
    return DR_OK;
}

/* The numbers are drawn here; inspect uses them once the boxes are known. */
static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    struct par *p = par;
    (void)conf;
    if (!dr__is_image(in))
        return dr__fail(err, DR_ERR_ARG, "random_iou_crop: the first of its fields must be the image");
    *p = (struct par){ .rect = { 0, 0, dr__width(in), dr__height(in) }, .rng = *rng };
    return DR_OK;
}

static bool centre_inside(const float *box, const dr_rect *r)
{
    float x = 0.5f * (box[0] + box[2]), y = 0.5f * (box[1] + box[3]);
    return (float)r->x < x && x < (float)(r->x + r->w) && (float)r->y < y && y < (float)(r->y + r->h);
}

static float overlap(const float *b, const dr_rect *r)
{
    float left = DR_MAX(b[0], (float)r->x), right = DR_MIN(b[2], (float)(r->x + r->w));
    float top = DR_MAX(b[1], (float)r->y), bottom = DR_MIN(b[3], (float)(r->y + r->h));
    float common = right > left && bottom > top ? (right - left) * (bottom - top) : 0.0f;
    float both = (b[2] - b[0]) * (b[3] - b[1]) + (float)r->w * (float)r->h - common;
    return both > 0 ? common / both : 0.0f;
}

static bool fits(const dr_view *boxes, const dr_rect *r, double least)
{
    for (int64_t i = 0; i < boxes->desc.dims[0]; i++) {
        const float *b = (const float *)boxes->data + 4 * i;
        if (centre_inside(b, r) && overlap(b, r) >= (float)least)
            return true;
    }
    return false;
}

/* One rectangle; false: of a wrong shape. */
static bool try_rect(const struct conf *c, dr_rng *rng, int64_t w, int64_t h, dr_rect *r)
{
    r->w = (int64_t)((double)w * dr__rng_uniform(rng, c->min_scale, c->max_scale));
    r->h = (int64_t)((double)h * dr__rng_uniform(rng, c->min_scale, c->max_scale));
    if (r->w < 1 || r->h < 1)
        return false;
    double ratio = (double)r->w / (double)r->h;
    if (!(ratio >= c->min_aspect_ratio && ratio <= c->max_aspect_ratio))
        return false;
    r->x = (int64_t)((double)(w - r->w) * dr__rng_unit(rng));
    r->y = (int64_t)((double)(h - r->h) * dr__rng_unit(rng));
    return true;
}

/* Can there be a rectangle of an allowed shape with the centre of a box in it? */
static bool is_possible(const struct conf *c, const dr_view *boxes, const dr_desc *frame)
{
    dr_rect all = { 0, 0, dr__width(frame), dr__height(frame) };
    double w = (double)all.w, h = (double)all.h;
    if (w * c->max_scale < 1 || h * c->max_scale < 1)
        return false;
    double widest = w * c->max_scale / DR_MAX(floor(h * c->min_scale), 1);
    double narrowest = DR_MAX(floor(w * c->min_scale), 1) / (h * c->max_scale);
    return widest >= c->min_aspect_ratio && narrowest <= c->max_aspect_ratio && fits(boxes, &all, 0);
}

/* Tries rectangles until one has the overlap with a box; false: none had. */
static bool find_rect(const struct conf *c, const dr_view *boxes, const dr_desc *frame, double least, int *left,
                      struct par *p, dr_rng *rng)
{
    for (int64_t i = 0; i<c->trials && * left> 0; i++, --*left) {
        dr_rect r;
        if (!try_rect(c, rng, dr__width(frame), dr__height(frame), &r) || !fits(boxes, &r, least))
            continue;
        p->rect = r;
        p->cropped = true;
        return true;
    }
    return false;
}

static dr_status inspect(dr_task *task, void *par)
{
    const struct conf *c = task->conf;
    struct par *p = par;
    dr_rng rng = p->rng;
    const dr_view *boxes = NULL;
    const dr_desc *frame = NULL;
    DR_TRY(dr__boxes_among(task, "random_iou_crop", &boxes));
    DR_TRY(dr__boxes_frame(task, "random_iou_crop", &frame));
    int left = is_possible(c, boxes, frame) ? MOST_TRIES : 0;
    while (left > 0) {
        double least = c->sampler_options.v[dr__rng_below(&rng, (uint64_t)c->sampler_options.n)];
        if (least >= 1.0 || find_rect(c, boxes, frame, least, &left, p, &rng))
            break;
    }
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct par *p = par;
    (void)conf;
    if (dr__is_points(in))
        return dr__boxes_plan(in, "random_iou_crop", out, err);
    DR_TRY(dr__want_image(in, ~0u, "random_iou_crop", err));
    out->desc = p ? dr__desc_resized(in, p->rect.h, p->rect.w) : dr__desc_resized(in, DR_UNKNOWN, DR_UNKNOWN);
    out->scratch = dr__place_scratch(&out->desc);
    return DR_OK;
}

static void crop_boxes(const struct par *p, const dr_view *in, dr_view *out)
{
    if (p->cropped)
        dr__boxes_crop(in, out, &p->rect);
    else
        dr__view_copy(out, in);
    for (int64_t i = 0; p->cropped && in->desc.kind == DR_KIND_BOXES && i < in->desc.dims[0]; i++) {
        float *b = (float *)out->data + 4 * i;
        if (!centre_inside((const float *)in->data + 4 * i, &p->rect))
            b[0] = b[1] = b[2] = b[3] = 0;
    }
}

static dr__placing placing(const struct par *p, const dr_desc *in)
{
    return dr__placing_at(in, p->rect.x, p->rect.y);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    (void)task;
    if (dr__is_points(&in->desc)) {
        crop_boxes(par, in, out);
        return DR_OK;
    }
    dr__placing p = placing(par, &in->desc);
    dr__place(&p, in, out);
    return DR_OK;
}

static dr_status rows(dr_task *task, const void *par, const dr_view *in, const dr_desc *out, dr__row_sink *sink)
{
    dr__placing p = placing(par, &in->desc);
    dr__place_rows(&p, in, out, task->scratch, sink);
    return DR_OK;
}

static dr_status feed(dr_task *task, const void *par, const dr_desc *in, const dr_desc *out, dr__row_sink *sink,
                      struct dr__bands **bands)
{
    (void)par, (void)in, (void)out;
    *bands = dr__place_feed(task->scratch, sink);
    return DR_OK;
}

static void region(const void *conf, const void *par, const dr_desc *in, dr_rect *need)
{
    (void)conf, (void)in;
    *need = ((const struct par *)par)->rect;
}

const dr_op_def dr__op_random_iou_crop = {
    .name = "random_iou_crop",
    .version = 1,
    .summary = "cut a rectangle that overlaps with a box; boxes follow",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_WINDOW | DR_OP_EARLY | DR_OP_MOVES,
    .kinds = DR__ON_PLACES,
    .needs = DR__KIND(BOXES),
    .init = init,
    .draw = draw,
    .inspect = inspect,
    .plan = plan,
    .run = run,
    .rows = rows,
    .feed = feed,
    .region = region,
};
