/* resize.c: PIL's Image.resize and torch's interpolate, as a plan in memory of the caller that takes input rows and
 * passes on finished rows.
 *
 * The passes are PIL's and torch's, each rounded to 8 bits.  The horizontal one runs four rows at a time, and the
 * vertical one follows as soon as it can: the results wait in a ring of a few rows, so that the working set is some
 * tens of kilobytes whatever the size of the image.  Since version 13 PIL does the vertical pass first where the height
 * loses more than twice as many pixels as the width; then the vertical pass makes four rows and the horizontal one
 * finishes them.  Torch never does.
 *
 * Input comes in bands of any height; an image that is in memory is one band.  Rows of a band that later output rows
 * need are kept when it ends: rows after the horizontal pass are in the ring already, others are copied to it.
 */
#include "kernel/resize.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

enum { BATCH = 4 }; /* rows per call of the horizontal pass */

/* ---- plan ---- */

/* Cuts a block into pieces; without a base it only counts. */
struct block {
    uint8_t *base;
    size_t used;
    bool overflow;
};

static void *cut(struct block *b, size_t count, size_t size)
{
    size_t bytes, end;
    if (!dr__mul_size(count, size, &bytes) || !dr__add_size(bytes, 63, &bytes) ||
        !dr__add_size(b->used, bytes & ~(size_t)63, &end)) {
        b->overflow = true;
        return NULL;
    }
    void *piece = b->base ? b->base + b->used : NULL;
    b->used = end;
    return piece;
}

static void cut_taps(struct block *b, dr__taps *t, int n_out, int room)
{
    const size_t n = (size_t)n_out;
    t->start = cut(b, n, sizeof *t->start);
    t->size = cut(b, n, sizeof *t->size);
    t->coef = cut(b, n * (size_t)room, sizeof *t->coef);
    t->split = cut(b, n * (size_t)room, 2 * sizeof *t->split);
}

static dr__resize_order order_of(const dr__resize_spec *s)
{
    const bool h = s->out_w != s->in_w, v = s->out_h != s->in_h;
    if (!h && !v)
        return DR__RESIZE_COPY;
    if (s->filter == DR__FILTER_NEAREST || s->filter == DR__FILTER_NEAREST_EXACT)
        return DR__RESIZE_NEAREST;
    if (!h || !v)
        return h ? DR__RESIZE_H : DR__RESIZE_V;
    if (s->rule != DR__RULE_PIL)
        return DR__RESIZE_HV;
    const int less_h = s->in_h - s->out_h, less_w = s->in_w - s->out_w;
    return less_h > 0 && less_h > 2 * less_w ? DR__RESIZE_VH : DR__RESIZE_HV;
}

static size_t round_up_64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

static void cut_nearest(dr__resize *r, struct block *b)
{
    const dr__resize_spec *s = &r->spec;
    r->out_stride = round_up_64((size_t)s->out_w * (size_t)s->channels);
    r->h.start = cut(b, (size_t)s->out_w, sizeof *r->h.start);
    r->v.start = cut(b, (size_t)s->out_h, sizeof *r->v.start);
    r->out = cut(b, 1, r->out_stride);
}

/* A few kilobytes too many for the rarer orders keep this short: it is one list for all. */
static void cut_passes(dr__resize *r, struct block *b)
{
    const dr__resize_spec *s = &r->spec;
    const size_t c = (size_t)s->channels;
    const int room_h = dr__taps_room(s->in_w, s->out_w, s->filter, s->rule);
    const int room_v = dr__taps_room(s->in_h, s->out_h, s->filter, s->rule);
    const size_t weights_h = dr__taps_weights(s->in_w, s->out_w, s->filter, s->rule);
    const size_t weights_v = dr__taps_weights(s->in_h, s->out_h, s->filter, s->rule);
    const dr__taps widest = { .stride = room_h };
    cut_taps(b, &r->h, s->out_w, room_h);
    cut_taps(b, &r->v, s->out_h, room_v);
    r->weights = cut(b, DR_MAX(weights_h, weights_v), sizeof *r->weights);
    r->rows = cut(b, (size_t)room_v, sizeof *r->rows);
    r->out_stride = round_up_64((size_t)s->out_w * c);
    r->padded_stride = round_up_64((size_t)s->in_w * c + DR__RESAMPLE_OVERREAD(&widest, c));
    r->out = cut(b, BATCH, r->out_stride);
    r->n_ring = r->order == DR__RESIZE_HV ? room_v + BATCH : room_v;
    r->ring_stride = r->order == DR__RESIZE_HV ? r->out_stride : r->padded_stride;
    if (r->order != DR__RESIZE_H)
        r->ring = cut(b, (size_t)r->n_ring, r->ring_stride);
    if (r->order == DR__RESIZE_VH)
        r->middle = cut(b, BATCH, r->padded_stride);
    else if (r->order != DR__RESIZE_V)
        r->padded = cut(b, BATCH, r->padded_stride);
}

static void cut_all(dr__resize *r, const dr__resize_spec *spec, struct block *b)
{
    *r = (dr__resize){ .spec = *spec, .order = order_of(spec) };
    if (r->order == DR__RESIZE_NEAREST)
        cut_nearest(r, b);
    else if (r->order != DR__RESIZE_COPY)
        cut_passes(r, b);
}

static bool in_range(int size)
{
    return size >= 1 && size <= DR__RESIZE_MAX;
}

bool dr__resize_scratch(const dr__resize_spec *spec, size_t *bytes)
{
    if (!in_range(spec->in_w) || !in_range(spec->in_h) || !in_range(spec->out_w) || !in_range(spec->out_h))
        return false;
    struct block counter = { 0 };
    dr__resize r;
    cut_all(&r, spec, &counter);
    *bytes = counter.used;
    return !counter.overflow;
}

void dr__resize_plan(dr__resize *r, const dr__resize_spec *spec, void *scratch)
{
    struct block block = { .base = scratch };
    cut_all(r, spec, &block);
    if (r->order == DR__RESIZE_NEAREST) {
        dr__taps_nearest(r->h.start, spec->in_w, spec->out_w, spec->filter, spec->rule);
        dr__taps_nearest(r->v.start, spec->in_h, spec->out_h, spec->filter, spec->rule);
        return;
    }
    if (r->order == DR__RESIZE_COPY)
        return;
    assert(spec->channels == 1 || spec->channels == 3 || spec->channels == 4);
    if (r->order != DR__RESIZE_V)
        dr__taps_fill(&r->h, r->weights, spec->in_w, spec->out_w, spec->filter, spec->rule);
    if (r->order != DR__RESIZE_H)
        dr__taps_fill(&r->v, r->weights, spec->in_h, spec->out_h, spec->filter, spec->rule);
    if (r->middle)
        memset(r->middle, 0, BATCH * r->padded_stride);
}

/* ---- run ---- */

typedef dr__resize_flow flow;

static size_t input_bytes(const flow *f)
{
    return (size_t)f->r->spec.in_w * (size_t)f->r->spec.channels;
}

static size_t output_bytes(const flow *f)
{
    return (size_t)f->r->spec.out_w * (size_t)f->r->spec.channels;
}

static uint8_t *ring_row(const flow *f, int y)
{
    return f->r->ring + (size_t)(y % f->r->n_ring) * f->r->ring_stride;
}

/* Row y of the current band. */
static const uint8_t *band_row(const flow *f, int y)
{
    return f->rows + (y - f->taken) * f->stride;
}

static int band_end(const flow *f)
{
    return f->taken + f->n;
}

/* Row y with enough bytes behind it for the horizontal pass: in place where later rows follow, else copied. */
static const uint8_t *padded_row(const flow *f, int y, int slot)
{
    const dr__resize *r = f->r;
    const size_t past = DR__RESAMPLE_OVERREAD(&r->h, r->spec.channels), bytes = input_bytes(f);
    const size_t after = f->stride > 0 ? (size_t)f->stride * (size_t)(band_end(f) - 1 - y) : 0;
    if (after + f->slack >= past)
        return band_row(f, y);
    uint8_t *copy = r->padded + (size_t)slot * r->padded_stride;
    memcpy(copy, band_row(f, y), bytes);
    memset(copy + bytes, 0, past);
    return copy;
}

/* n <= 4 input rows from y on through the horizontal pass. */
static void widen(const flow *f, int y, int n, uint8_t *const *to)
{
    const uint8_t *from[BATCH];
    for (int i = 0; i < n; i++)
        from[i] = padded_row(f, y + i, i);
    f->k->resample_h(to, from, n, f->r->spec.channels, &f->r->h);
}

static void take_copy(flow *f)
{
    for (; f->y < band_end(f); f->y++)
        f->sink(f->user, band_row(f, f->y), f->y);
}

static void pick_columns(uint8_t *to, const uint8_t *from, const int32_t *start, int n, size_t pixel)
{
    for (int x = 0; x < n; x++, to += pixel) {
        if (start[x] < 0)
            memset(to, 0, pixel);
        else if (pixel == 3)
            memcpy(to, from + (size_t)start[x] * 3, 3);
        else
            memcpy(to, from + (size_t)start[x] * pixel, pixel);
    }
}

static void take_nearest(flow *f)
{
    const dr__resize *r = f->r;
    for (; f->y < r->spec.out_h && r->v.start[f->y] < band_end(f); f->y++) {
        if (r->v.start[f->y] < 0)
            memset(r->out, 0, output_bytes(f));
        else
            pick_columns(r->out, band_row(f, r->v.start[f->y]), r->h.start, r->spec.out_w, (size_t)r->spec.channels);
        f->sink(f->user, r->out, f->y);
    }
}

static void take_h(flow *f)
{
    uint8_t *out[BATCH];
    for (int i = 0; i < BATCH; i++)
        out[i] = f->r->out + (size_t)i * f->r->out_stride;
    while (f->y < band_end(f)) {
        const int n = DR_MIN(BATCH, band_end(f) - f->y);
        widen(f, f->y, n, out);
        for (int i = 0; i < n; i++)
            f->sink(f->user, out[i], f->y++);
    }
}

/* Whether the input of the next output row is among the first `end` rows. */
static bool can_finish(const flow *f, int end)
{
    const dr__resize *r = f->r;
    return f->y < r->spec.out_h && r->v.start[f->y] + r->v.size[f->y] <= end;
}

/* The ring has room for the rows that one output row needs and BATCH more. */
static void take_hv(flow *f)
{
    const dr__resize *r = f->r;
    for (int y = f->taken; y < band_end(f);) {
        uint8_t *to[BATCH];
        const int n = DR_MIN(BATCH, band_end(f) - y);
        for (int i = 0; i < n; i++)
            to[i] = ring_row(f, y + i);
        widen(f, y, n, to);
        for (y += n; can_finish(f, y); f->y++) {
            for (int j = 0; j < r->v.size[f->y]; j++)
                r->rows[j] = ring_row(f, r->v.start[f->y] + j);
            f->k->resample_v(r->out, r->rows, &r->v, (size_t)f->y, output_bytes(f));
            f->sink(f->user, r->out, f->y);
        }
    }
}

/* The vertical pass for the next output row, from the input itself or from kept rows. */
static void narrow(const flow *f, uint8_t *to)
{
    const dr__resize *r = f->r;
    for (int j = 0; j < r->v.size[f->y]; j++) {
        const int y = r->v.start[f->y] + j;
        r->rows[j] = y < f->taken ? ring_row(f, y) : band_row(f, y);
    }
    f->k->resample_v(to, r->rows, &r->v, (size_t)f->y, input_bytes(f));
}

/* Copies the rows of the band that later output rows need. */
static void keep_rows(const flow *f)
{
    if (f->y == f->r->spec.out_h)
        return;
    for (int y = DR_MAX(f->r->v.start[f->y], f->taken); y < band_end(f); y++)
        memcpy(ring_row(f, y), band_row(f, y), input_bytes(f));
}

static void take_v(flow *f)
{
    for (; can_finish(f, band_end(f)); f->y++) {
        narrow(f, f->r->out);
        f->sink(f->user, f->r->out, f->y);
    }
    keep_rows(f);
}

/* Runs the horizontal pass on the waiting rows. */
static void finish_middle(flow *f)
{
    const dr__resize *r = f->r;
    const uint8_t *from[BATCH];
    uint8_t *out[BATCH];
    for (int i = 0; i < f->n_middle; i++) {
        from[i] = r->middle + (size_t)i * r->padded_stride;
        out[i] = r->out + (size_t)i * r->out_stride;
    }
    f->k->resample_h(out, from, f->n_middle, r->spec.channels, &r->h);
    for (int i = 0; i < f->n_middle; i++)
        f->sink(f->user, out[i], f->y - f->n_middle + i);
    f->n_middle = 0;
}

static void take_vh(flow *f)
{
    while (can_finish(f, band_end(f))) {
        narrow(f, f->r->middle + (size_t)f->n_middle * f->r->padded_stride);
        f->y++;
        f->n_middle++;
        if (f->n_middle == BATCH || f->y == f->r->spec.out_h)
            finish_middle(f);
    }
    keep_rows(f);
}

void dr__resize_begin(dr__resize_flow *f, const dr__resize *r, const dr__kernels *k, dr__resize_sink sink, void *user)
{
    *f = (dr__resize_flow){ .r = r, .k = k, .sink = sink, .user = user };
}

void dr__resize_take(dr__resize_flow *f, const uint8_t *rows, ptrdiff_t stride, int n, size_t slack)
{
    static void (*const takes[])(flow *) = {
        [DR__RESIZE_COPY] = take_copy, [DR__RESIZE_NEAREST] = take_nearest, [DR__RESIZE_H] = take_h,
        [DR__RESIZE_V] = take_v,       [DR__RESIZE_HV] = take_hv,           [DR__RESIZE_VH] = take_vh,
    };
    assert(n >= 1 && n <= f->r->spec.in_h - f->taken);
    f->rows = rows;
    f->stride = stride;
    f->n = n;
    f->slack = slack;
    takes[f->r->order](f);
    f->taken += n;
}

void dr__resize_run(const dr__resize *r, const dr__kernels *k, const uint8_t *src, ptrdiff_t stride,
                    dr__resize_sink sink, void *user)
{
    dr__resize_flow f;
    dr__resize_begin(&f, r, k, sink, user);
    dr__resize_take(&f, src, stride, r->spec.in_h, 0);
}
