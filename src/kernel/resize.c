/* resize.c: PIL's Image.resize as a plan in caller's memory and a run that pushes out finished rows.
 *
 * The passes are PIL's, each rounded to 8 bits.  The horizontal one runs four rows at a time and only as far ahead as
 * the vertical one needs: its results wait in a ring of a few rows, so that the working set is some tens of kilobytes
 * whatever the size of the image.  Since version 13 PIL does the vertical pass first where the height loses more than
 * twice as many pixels as the width; then the vertical pass makes four rows and the horizontal one finishes them.
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
    if (s->filter == DR__FILTER_NEAREST)
        return DR__RESIZE_NEAREST;
    if (!h || !v)
        return h ? DR__RESIZE_H : DR__RESIZE_V;
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
    const int room_h = dr__taps_room(s->in_w, s->out_w, s->filter);
    const int room_v = dr__taps_room(s->in_h, s->out_h, s->filter);
    const dr__taps widest = { .stride = room_h };
    cut_taps(b, &r->h, s->out_w, room_h);
    cut_taps(b, &r->v, s->out_h, room_v);
    r->weights = cut(b, (size_t)DR_MAX(room_h, room_v), sizeof *r->weights);
    r->rows = cut(b, (size_t)room_v, sizeof *r->rows);
    r->out_stride = round_up_64((size_t)s->out_w * c);
    r->padded_stride = round_up_64((size_t)s->in_w * c + DR__RESAMPLE_OVERREAD(&widest, c));
    r->n_ring = room_v + BATCH;
    r->out = cut(b, BATCH, r->out_stride);
    if (r->order == DR__RESIZE_HV)
        r->ring = cut(b, (size_t)r->n_ring, r->out_stride);
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
        dr__taps_nearest(r->h.start, spec->in_w, spec->out_w);
        dr__taps_nearest(r->v.start, spec->in_h, spec->out_h);
        return;
    }
    if (r->order == DR__RESIZE_COPY)
        return;
    assert(spec->channels == 1 || spec->channels == 3 || spec->channels == 4);
    if (r->order != DR__RESIZE_V)
        dr__taps_fill(&r->h, r->weights, spec->in_w, spec->out_w, spec->filter);
    if (r->order != DR__RESIZE_H)
        dr__taps_fill(&r->v, r->weights, spec->in_h, spec->out_h, spec->filter);
    if (r->middle)
        memset(r->middle, 0, BATCH * r->padded_stride);
}

/* ---- run ---- */

/* The input, and where the output goes. */
struct flow {
    const dr__resize *r;
    const dr__kernels *k;
    const uint8_t *src;
    ptrdiff_t stride;
    dr__resize_sink sink;
    void *user;
};

static const uint8_t *input_row(const struct flow *f, int y)
{
    return f->src + y * f->stride;
}

static size_t input_bytes(const struct flow *f)
{
    return (size_t)f->r->spec.in_w * (size_t)f->r->spec.channels;
}

static size_t output_bytes(const struct flow *f)
{
    return (size_t)f->r->spec.out_w * (size_t)f->r->spec.channels;
}

/* Row y with enough bytes behind it for the horizontal pass: in place where later rows follow, else copied. */
static const uint8_t *padded_row(const struct flow *f, int y, int slot)
{
    const dr__resize *r = f->r;
    const size_t past = DR__RESAMPLE_OVERREAD(&r->h, r->spec.channels), bytes = input_bytes(f);
    if (f->stride > 0 && (size_t)f->stride * (size_t)(r->spec.in_h - 1 - y) >= past)
        return input_row(f, y);
    uint8_t *copy = r->padded + (size_t)slot * r->padded_stride;
    memcpy(copy, input_row(f, y), bytes);
    memset(copy + bytes, 0, past);
    return copy;
}

/* n <= 4 input rows from y on through the horizontal pass. */
static void widen(const struct flow *f, int y, int n, uint8_t *const *to)
{
    const uint8_t *from[BATCH];
    for (int i = 0; i < n; i++)
        from[i] = padded_row(f, y + i, i);
    f->k->resample_h(to, from, n, f->r->spec.channels, &f->r->h);
}

static void run_copy(const struct flow *f)
{
    for (int y = 0; y < f->r->spec.out_h; y++)
        f->sink(f->user, input_row(f, y), y);
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

static void run_nearest(const struct flow *f)
{
    const dr__resize *r = f->r;
    for (int y = 0; y < r->spec.out_h; y++) {
        if (r->v.start[y] < 0)
            memset(r->out, 0, output_bytes(f));
        else
            pick_columns(r->out, input_row(f, r->v.start[y]), r->h.start, r->spec.out_w, (size_t)r->spec.channels);
        f->sink(f->user, r->out, y);
    }
}

static void run_h(const struct flow *f)
{
    const dr__resize *r = f->r;
    uint8_t *out[BATCH];
    for (int i = 0; i < BATCH; i++)
        out[i] = r->out + (size_t)i * r->out_stride;
    for (int y = 0; y < r->spec.out_h; y += BATCH) {
        const int n = DR_MIN(BATCH, r->spec.out_h - y);
        widen(f, y, n, out);
        for (int i = 0; i < n; i++)
            f->sink(f->user, out[i], y + i);
    }
}

/* The vertical pass for output row y straight from the input. */
static void narrow(const struct flow *f, int y, uint8_t *to)
{
    const dr__resize *r = f->r;
    for (int j = 0; j < r->v.size[y]; j++)
        r->rows[j] = input_row(f, r->v.start[y] + j);
    f->k->resample_v(to, r->rows, &r->v, (size_t)y, input_bytes(f));
}

static void run_v(const struct flow *f)
{
    for (int y = 0; y < f->r->spec.out_h; y++) {
        narrow(f, y, f->r->out);
        f->sink(f->user, f->r->out, y);
    }
}

/* Brings input rows up to `end` into the ring, of which `made` are there; returns how many are there then.  At most
 * BATCH - 1 rows too many are made, and the ring has room for them beside those that one output row needs. */
static int fill_ring(const struct flow *f, int made, int end, int last)
{
    const dr__resize *r = f->r;
    while (made < end) {
        uint8_t *to[BATCH];
        const int n = DR_MIN(BATCH, last - made);
        for (int i = 0; i < n; i++)
            to[i] = r->ring + (size_t)((made + i) % r->n_ring) * r->out_stride;
        widen(f, made, n, to);
        made += n;
    }
    return made;
}

static void run_hv(const struct flow *f)
{
    const dr__resize *r = f->r;
    const int n_out = r->spec.out_h, last = r->v.start[n_out - 1] + r->v.size[n_out - 1];
    int made = r->v.start[0];
    for (int y = 0; y < n_out; y++) {
        const int first = r->v.start[y], size = r->v.size[y];
        made = fill_ring(f, made, first + size, last);
        for (int j = 0; j < size; j++)
            r->rows[j] = r->ring + (size_t)((first + j) % r->n_ring) * r->out_stride;
        f->k->resample_v(r->out, r->rows, &r->v, (size_t)y, output_bytes(f));
        f->sink(f->user, r->out, y);
    }
}

static void run_vh(const struct flow *f)
{
    const dr__resize *r = f->r;
    uint8_t *middle[BATCH], *out[BATCH];
    for (int i = 0; i < BATCH; i++) {
        middle[i] = r->middle + (size_t)i * r->padded_stride;
        out[i] = r->out + (size_t)i * r->out_stride;
    }
    for (int y = 0; y < r->spec.out_h; y += BATCH) {
        const int n = DR_MIN(BATCH, r->spec.out_h - y);
        for (int i = 0; i < n; i++)
            narrow(f, y + i, middle[i]);
        f->k->resample_h(out, (const uint8_t *const *)middle, n, r->spec.channels, &r->h);
        for (int i = 0; i < n; i++)
            f->sink(f->user, out[i], y + i);
    }
}

void dr__resize_run(const dr__resize *r, const dr__kernels *k, const uint8_t *src, ptrdiff_t stride,
                    dr__resize_sink sink, void *user)
{
    static void (*const runs[])(const struct flow *) = {
        [DR__RESIZE_COPY] = run_copy, [DR__RESIZE_NEAREST] = run_nearest, [DR__RESIZE_H] = run_h,
        [DR__RESIZE_V] = run_v,       [DR__RESIZE_HV] = run_hv,           [DR__RESIZE_VH] = run_vh,
    };
    const struct flow f = { .r = r, .k = k, .src = src, .stride = stride, .sink = sink, .user = user };
    runs[r->order](&f);
}
