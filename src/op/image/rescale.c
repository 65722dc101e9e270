/* rescale.c: kernel/resize.h over views, with PIL's treatment of alpha (torch has none).
 *
 * Rows come in bands; an image in memory is one band.  Scratch begins with the struct that knows how far they have
 * come, and what the resizing needs.
 *
 * PIL multiplies the colours of an RGBA image by alpha before it interpolates and divides afterwards, each rounded to
 * 8 bits.  Scratch then also holds a few multiplied rows and one divided row.
 */
#include "op/image/rescale.h"

#include <string.h>

#include "base/alloc.h"
#include "codec/image/image.h"
#include "kernel/resize.h"
#include "op/image/geometry.h"

const char *const dr__backend_names[] = { "pil", "tensor", NULL };

const char *const dr__rescale_filters[] = {
    "nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos", NULL,
};

static const dr__filter filters[] = {
    DR__FILTER_NEAREST, DR__FILTER_NEAREST_EXACT, DR__FILTER_BILINEAR, DR__FILTER_BICUBIC,
    DR__FILTER_BOX,     DR__FILTER_HAMMING,       DR__FILTER_LANCZOS,
};

static bool is_nearest(dr__filter filter)
{
    return filter == DR__FILTER_NEAREST || filter == DR__FILTER_NEAREST_EXACT;
}

dr_status dr__rescale_check(int filter, int backend, const char *op, dr_error *err)
{
    bool known =
        is_nearest(filters[filter]) || filters[filter] == DR__FILTER_BILINEAR || filters[filter] == DR__FILTER_BICUBIC;
    if (backend == DR__BACKEND_PIL || known)
        return DR_OK;
    return dr__fail(
        err, DR_ERR_ARG,
        "%s: interpolation of the tensor backend must be nearest, nearest-exact, bilinear or bicubic, got \"%s\"", op,
        dr__rescale_filters[filter]);
}

dr_status dr__want_rescalable(const dr_desc *in, int filter, const char *op, dr_error *err)
{
    int64_t channels = dr__channels(in);
    DR_TRY(dr__want_image(in, ~0u, op, err));
    if (in->kind == DR_KIND_MASK || is_nearest(filters[filter]))
        return DR_OK;
    if (in->dtype != DR_U8)
        return dr__fail(err, DR_ERR_ARG, "%s: works on uint8 images, got %s: put it before to_dtype and normalize", op,
                        dr_dtype_name(in->dtype));
    if (channels >= 0 && channels != 1 && channels != 3 && channels != 4)
        return dr__fail(err, DR_ERR_ARG, "%s: image must have 1, 3 or 4 channels, got %lld", op, (long long)channels);
    return DR_OK;
}

static int small(int64_t v)
{
    return v > DR__RESIZE_MAX ? -1 : (int)v;
}

static dr__resize_rule rule_of(const dr__rescale *r, const dr_desc *in)
{
    if (in->kind == DR_KIND_MASK)
        return DR__RULE_TORCH; /* torchvision's masks are tensors, whatever the image is */
    if (r->backend == DR__BACKEND_PIL)
        return DR__RULE_PIL;
    return r->antialias ? DR__RULE_TORCH : DR__RULE_TORCH_ALIASED;
}

static dr__resize_spec spec_of(const dr__rescale *r, const dr_desc *in)
{
    bool smooth = in->kind == DR_KIND_MASK && !is_nearest(filters[r->filter]);
    return (dr__resize_spec){
        .in_w = small(r->from.w),
        .in_h = small(r->from.h),
        .out_w = small(r->w),
        .out_h = small(r->h),
        .channels = (int)dr__pixel_bytes(in),
        .filter = smooth ? DR__FILTER_NEAREST : filters[r->filter],
        .rule = rule_of(r, in),
    };
}

static bool has_alpha(const dr__resize_spec *s, const dr_desc *in)
{
    bool same_size = s->in_w == s->out_w && s->in_h == s->out_h;
    return in->kind != DR_KIND_MASK && s->channels == 4 && s->rule == DR__RULE_PIL && !is_nearest(s->filter) &&
           !same_size;
}

enum { MULTIPLIED = 4 }; /* rows at once: as many as the resizing likes */

/* An image on its way through. */
struct feeder {
    dr__bands bands; /* first: what is fed */
    dr__resize plan;
    dr__resize_flow flow;
    const dr__kernels *k;
    dr__row_sink *sink;
    int64_t in_w, out_w;
    uint8_t *multiplied; /* NULL: no alpha */
    uint8_t *line;       /* one divided row */
};

static size_t round_up_64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

dr_status dr__rescale_scratch(const dr__rescale *r, const dr_desc *in, const char *op, size_t *bytes, dr_error *err)
{
    dr__resize_spec s = spec_of(r, in);
    size_t rows = 0;
    bool fits = dr__resize_scratch(&s, bytes) && dr__add_size(*bytes, round_up_64(sizeof(struct feeder)), bytes);
    if (fits && has_alpha(&s, in))
        fits = dr__mul_size((size_t)s.in_w * MULTIPLIED + (size_t)s.out_w, 4, &rows) &&
               dr__add_size(*bytes, round_up_64(rows), bytes);
    if (fits)
        return DR_OK;
    return dr__fail(err, DR_ERR_LIMIT, "%s: cannot resize %lldx%lld pixels to %lldx%lld: each must be 1 to %d", op,
                    (long long)r->from.w, (long long)r->from.h, (long long)r->w, (long long)r->h, DR__RESIZE_MAX);
}

double dr__rescale_cost(const dr__rescale *r, const dr_desc *in)
{
    double pixel = (double)dr__pixel_bytes(in);
    return pixel * (0.5 * (double)r->from.w * (double)r->from.h + 1.0 * (double)r->w * (double)r->h);
}

/* a * b / 255, rounded. */
static inline unsigned mul_255(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

static void multiply_row(uint8_t *dst, const uint8_t *src, int64_t w)
{
    for (int64_t x = 0; x < w; x++, src += 4, dst += 4) {
        for (int k = 0; k < 3; k++)
            dst[k] = (uint8_t)mul_255(src[k], src[3]);
        dst[3] = src[3];
    }
}

static void divide_row(uint8_t *dst, const uint8_t *src, int64_t w)
{
    for (int64_t x = 0; x < w; x++, src += 4, dst += 4) {
        unsigned alpha = src[3];
        for (int k = 0; k < 3; k++) {
            unsigned v = alpha == 0 || alpha == 255 ? src[k] : 255u * src[k] / alpha;
            dst[k] = (uint8_t)DR_MIN(v, 255u);
        }
        dst[3] = src[3];
    }
}

/* Between the resizing, which speaks of rows in its way, and the sink of the op. */
static void relay_row(void *user, const uint8_t *row, int y)
{
    struct feeder *f = user;
    if (f->multiplied) {
        divide_row(f->line, row, f->out_w);
        row = f->line;
    }
    f->sink->row(f->sink, y, row);
}

static void begin(dr__bands *bands)
{
    struct feeder *f = (struct feeder *)bands;
    dr__resize_begin(&f->flow, &f->plan, f->k, relay_row, f);
}

static void take_multiplied(struct feeder *f, const uint8_t *rows, ptrdiff_t stride, int n)
{
    ptrdiff_t width = (ptrdiff_t)f->in_w * 4;
    for (int done = 0; done < n; done += MULTIPLIED) {
        int some = DR_MIN(MULTIPLIED, n - done);
        for (int i = 0; i < some; i++)
            multiply_row(f->multiplied + i * width, rows + (done + i) * stride, f->in_w);
        dr__resize_take(&f->flow, f->multiplied, width, some, 0);
    }
}

static void take_rows(struct feeder *f, const uint8_t *rows, ptrdiff_t stride, int n, size_t slack)
{
    if (f->multiplied)
        take_multiplied(f, rows, stride, n);
    else
        dr__resize_take(&f->flow, rows, stride, n, slack);
}

static void take(dr__bands *bands, const uint8_t *rows, ptrdiff_t stride, int n)
{
    take_rows((struct feeder *)bands, rows, stride, n, DR__BAND_SLACK);
}

dr__bands *dr__rescale_feed(dr_task *task, const dr__rescale *r, const dr_desc *in, dr__row_sink *sink)
{
    struct feeder *f = (struct feeder *)task->scratch;
    dr__resize_spec s = spec_of(r, in);
    uint8_t *room = task->scratch + round_up_64(sizeof *f);
    size_t used = 0;
    *f = (struct feeder){ .bands = { begin, take }, .k = task->k, .sink = sink, .in_w = s.in_w, .out_w = s.out_w };
    dr__resize_plan(&f->plan, &s, room);
    if (has_alpha(&s, in)) {
        dr__resize_scratch(&s, &used);
        f->multiplied = room + used;
        f->line = f->multiplied + (size_t)s.in_w * 4 * MULTIPLIED;
    }
    return &f->bands;
}

void dr__rescale_rows(dr_task *task, const dr__rescale *r, const dr_view *in, dr__row_sink *sink)
{
    const uint8_t *from = in->data + (r->from.y - in->window.y) * in->stride +
                          (r->from.x - in->window.x) * (int64_t)dr__pixel_bytes(&in->desc);
    dr__bands *bands = dr__rescale_feed(task, r, &in->desc, sink);
    bands->begin(bands);
    take_rows((struct feeder *)bands, from, in->stride, (int)r->from.h, 0);
}

struct to_view {
    dr__row_sink sink;
    dr_view *out;
    size_t bytes;
};

static void store_row(dr__row_sink *sink, int64_t y, const uint8_t *row)
{
    struct to_view *to = (struct to_view *)sink;
    memcpy(to->out->data + y * to->out->stride, row, to->bytes);
}

void dr__rescale_run(dr_task *task, const dr__rescale *r, const dr_view *in, dr_view *out)
{
    struct to_view to = { .sink = { store_row }, .out = out, .bytes = dr__row_bytes(&out->desc) };
    dr__rescale_rows(task, r, in, &to.sink);
}
