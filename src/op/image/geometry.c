/* geometry.c: canvases cut from images, and the small settings that go with them. */
#include "op/image/geometry.h"

#include <string.h>

#include "codec/image/image.h"
#include "kernel/half.h"

const char *const dr__border_names[] = { "constant", "edge", "reflect", "symmetric", NULL };

static int64_t whole(double v, double lo, double hi)
{
    return (int64_t)(v != v ? 0 : v < lo ? lo : v > hi ? hi : v);
}

void dr__element_store(dr_dtype dtype, uint8_t *at, double value)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } v = { 0 };
    switch (dtype) {
    case DR_U8:
        v.u8 = (uint8_t)whole(value, 0, UINT8_MAX);
        break;
    case DR_I8:
        v.i8 = (int8_t)whole(value, INT8_MIN, INT8_MAX);
        break;
    case DR_U16:
        v.u16 = (uint16_t)whole(value, 0, UINT16_MAX);
        break;
    case DR_I16:
        v.i16 = (int16_t)whole(value, INT16_MIN, INT16_MAX);
        break;
    case DR_I32:
        v.i32 = (int32_t)whole(value, INT32_MIN, INT32_MAX);
        break;
    case DR_I64:
        v.i64 = whole(value, -9e18, 9e18);
        break;
    case DR_F16:
        v.u16 = dr__f32_to_f16((float)value);
        break;
    case DR_BF16:
        v.u16 = dr__f32_to_bf16((float)value);
        break;
    case DR_F32:
        v.f32 = (float)value;
        break;
    case DR_F64:
        v.f64 = value;
        break;
    case DR_BOOL:
        v.u8 = value != 0.0;
        break;
    }
    memcpy(at, &v, dr_dtype_size(dtype));
}

dr_status dr__fill_pixel(const dr_reals *fill, const dr_desc *d, const char *op, uint8_t pixel[DR__PIXEL_MAX],
                         dr_error *err)
{
    int64_t channels = dr__channels(d);
    memset(pixel, 0, DR__PIXEL_MAX);
    if (d->kind == DR_KIND_MASK || channels < 0)
        return DR_OK;
    if (channels > DR_PARAM_LIST)
        return dr__fail(err, DR_ERR_ARG, "%s: image must have at most %d channels, got %lld", op, DR_PARAM_LIST,
                        (long long)channels);
    if (fill->n > 1 && fill->n != channels)
        return dr__fail(err, DR_ERR_ARG, "%s: fill must have 1 value or %lld, one for each channel, got %d", op,
                        (long long)channels, fill->n);
    for (int64_t c = 0; c < channels && fill->n; c++)
        dr__element_store(d->dtype, pixel + c * (int64_t)dr_dtype_size(d->dtype), fill->v[fill->n > 1 ? c : 0]);
    return DR_OK;
}

dr_status dr__padding_sides(const dr_ints *padding, const char *op, int64_t sides[4], dr_error *err)
{
    static const int source[5][4] = { { 0 }, { 0, 0, 0, 0 }, { 0, 1, 0, 1 }, { 0 }, { 0, 1, 2, 3 } };
    if (padding->n == 3)
        return dr__fail(err, DR_ERR_ARG, "%s: padding must have 1, 2 or 4 values, got 3", op);
    for (int i = 0; i < 4; i++)
        sides[i] = padding->n ? padding->v[source[padding->n][i]] : 0;
    return DR_OK;
}

static bool some_left(int64_t extent, int64_t before, int64_t after)
{
    return extent < 0 || extent + DR_MIN(before, 0) + DR_MIN(after, 0) > 0;
}

dr_status dr__padding_fits(const dr_desc *in, const int64_t sides[4], const char *op, dr_error *err)
{
    if (some_left(dr__width(in), sides[0], sides[2]) && some_left(dr__height(in), sides[1], sides[3]))
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "%s: padding %lld, %lld, %lld, %lld leaves nothing of %lldx%lld pixels", op,
                    (long long)sides[0], (long long)sides[1], (long long)sides[2], (long long)sides[3],
                    (long long)dr__width(in), (long long)dr__height(in));
}

dr__placing dr__placing_at(const dr_desc *in, int64_t x, int64_t y)
{
    return (dr__placing){ .from = { 0, 0, dr__width(in), dr__height(in) }, .x = x, .y = y };
}

dr__placing dr__placing_padded(const dr_desc *in, const int64_t sides[4], dr__border border, int64_t x, int64_t y)
{
    /* A negative side cuts before the other sides grow, as torchvision does it. */
    int64_t cut[4];
    for (int i = 0; i < 4; i++)
        cut[i] = DR_MAX(-sides[i], 0);
    return (dr__placing){
        .from = { cut[0], cut[1], dr__width(in) - cut[0] - cut[2], dr__height(in) - cut[1] - cut[3] },
        .x = x - DR_MAX(sides[0], 0),
        .y = y - DR_MAX(sides[1], 0),
        .border = border,
    };
}

/* The place in 0 .. n-1 that stands for v; -1: the fill. */
static int64_t fold(int64_t v, int64_t n, dr__border border)
{
    if (v >= 0 && v < n)
        return v;
    if (border == DR__BORDER_CONSTANT || n <= 0)
        return -1;
    if (border == DR__BORDER_EDGE || n == 1)
        return v < 0 ? 0 : n - 1;
    int64_t mirror = border == DR__BORDER_REFLECT ? 2 * n - 2 : 2 * n - 1; /* where the way back reaches 0 */
    int64_t period = border == DR__BORDER_REFLECT ? 2 * n - 2 : 2 * n;
    v %= period;
    if (v < 0)
        v += period;
    return v < n ? v : mirror - v;
}

static void border_pixels(const dr__placing *p, const uint8_t *in, size_t pixel, uint8_t *row, int64_t x, int64_t end)
{
    for (; x < end; x++) {
        int64_t sx = in ? fold(x + p->x, p->from.w, p->border) : -1;
        memcpy(row + x * (int64_t)pixel, sx < 0 ? p->fill : in + sx * (int64_t)pixel, pixel);
    }
}

/* The image's row (its first pixel in `from`) that canvas row y shows; NULL: fill. */
static const uint8_t *source_row(const dr__placing *p, const dr_view *in, int64_t y)
{
    int64_t sy = fold(y + p->y, p->from.h, p->border);
    if (sy < 0)
        return NULL;
    return in->data + (p->from.y + sy - in->window.y) * in->stride +
           (p->from.x - in->window.x) * (int64_t)dr__pixel_bytes(&in->desc);
}

/* Columns of the canvas that lie inside the image. */
static void inner_columns(const dr__placing *p, int64_t width, int64_t *begin, int64_t *end)
{
    *begin = DR_MIN(DR_MAX(-p->x, 0), width);
    *end = DR_MAX(DR_MIN(p->from.w - p->x, width), *begin);
}

static void place_row(const dr__placing *p, const dr_view *in, int64_t y, int64_t width, uint8_t *row)
{
    size_t pixel = dr__pixel_bytes(&in->desc);
    const uint8_t *source = source_row(p, in, y);
    int64_t begin, end;
    inner_columns(p, width, &begin, &end);
    if (!source)
        begin = end = width;
    border_pixels(p, source, pixel, row, 0, begin);
    if (end > begin)
        memcpy(row + begin * (int64_t)pixel, source + (begin + p->x) * (int64_t)pixel, (size_t)(end - begin) * pixel);
    border_pixels(p, source, pixel, row, end, width);
}

void dr__place(const dr__placing *p, const dr_view *in, dr_view *out)
{
    int64_t w = dr__width(&out->desc), h = dr__height(&out->desc);
    for (int64_t y = 0; y < h; y++)
        place_row(p, in, y, w, out->data + y * out->stride);
}

void dr__place_rows(const dr__placing *p, const dr_view *in, const dr_desc *out, uint8_t *scratch, dr__row_sink *sink)
{
    int64_t w = dr__width(out), h = dr__height(out), begin, end;
    inner_columns(p, w, &begin, &end);
    bool inside = begin == 0 && end == w;
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *source = inside ? source_row(p, in, y) : NULL;
        if (source) {
            sink->row(sink, y, source + p->x * (int64_t)dr__pixel_bytes(out));
            continue;
        }
        place_row(p, in, y, w, scratch);
        sink->row(sink, y, scratch);
    }
}

/* Hands rows on. */
struct feeder {
    dr__bands bands; /* first: what is fed */
    dr__row_sink *sink;
    int64_t y;
};

size_t dr__place_scratch(const dr_desc *out)
{
    return dr__desc_known(out) ? DR_MAX(dr__row_bytes(out), sizeof(struct feeder)) : 0;
}

static void begin(dr__bands *bands)
{
    ((struct feeder *)bands)->y = 0;
}

static void take(dr__bands *bands, const uint8_t *rows, ptrdiff_t stride, int n)
{
    struct feeder *f = (struct feeder *)bands;
    for (int i = 0; i < n; i++)
        f->sink->row(f->sink, f->y++, rows + i * stride);
}

bool dr__place_feeds(const dr__placing *p, int64_t width, int64_t height)
{
    return p->x >= 0 && p->y >= 0 && p->x + width <= p->from.w && p->y + height <= p->from.h;
}

dr__bands *dr__place_feed(uint8_t *scratch, dr__row_sink *sink)
{
    struct feeder *f = (struct feeder *)scratch;
    *f = (struct feeder){ .bands = { begin, take }, .sink = sink };
    return &f->bands;
}

/* One axis of the region: [*at, *at + *n) of the image. */
static void region_axis(int64_t first, int64_t count, int64_t from, int64_t from_n, dr__border border, int64_t *at,
                        int64_t *n)
{
    int64_t begin = DR_MAX(first, 0), end = DR_MIN(first + count, from_n);
    bool inside = first >= 0 && first + count <= from_n;
    if (!inside && border != DR__BORDER_CONSTANT) {
        begin = 0;
        end = from_n;
    }
    if (begin >= end) { /* nothing but fill */
        begin = 0;
        end = 1;
    }
    *at = from + begin;
    *n = end - begin;
}

dr_rect dr__place_region(const dr__placing *p, int64_t width, int64_t height)
{
    dr_rect r;
    region_axis(p->x, width, p->from.x, p->from.w, p->border, &r.x, &r.w);
    region_axis(p->y, height, p->from.y, p->from.h, p->border, &r.y, &r.h);
    return r;
}
