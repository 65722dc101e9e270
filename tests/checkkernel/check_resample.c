/* check_resample.c: the passes of the resampling, with the coefficients of real filters and with any. */
#include <string.h>

#include "checkkernel.h"
#include "kernel/taps.h"

enum { MAX_OUT = 300, MAX_IN = 400, MAX_ROOM = 2 * MAX_IN };

static struct {
    int32_t start[MAX_OUT], size[MAX_OUT], coef[MAX_OUT * MAX_ROOM];
    int16_t split[MAX_OUT * MAX_ROOM * 2];
    double weights[MAX_OUT * MAX_ROOM];
} room;

static dr__taps taps_random(int n_in, int n_out)
{
    static const dr__filter filters[] = { DR__FILTER_BILINEAR, DR__FILTER_BICUBIC, DR__FILTER_LANCZOS, DR__FILTER_BOX,
                                          DR__FILTER_HAMMING };
    dr__taps t = { .start = room.start, .size = room.size, .coef = room.coef, .split = room.split };
    const dr__resize_rule rule = (dr__resize_rule)rnd_below(3);
    const size_t n_filters = rule == DR__RULE_PIL ? DR_COUNT(filters) : 2; /* torch has the first two */
    dr__taps_fill(&t, room.weights, n_in, n_out, filters[rnd_below(n_filters)], rule);
    return t;
}

/* Any coefficients of up to 1.0 with either sign, as many as keep a sum of 8-bit values within 32 bits. */
static void shake(dr__taps *t)
{
    for (int i = 0; i < t->n_out; i++) {
        const int n = t->size[i];
        for (int j = 0; j < n; j++) {
            const int32_t v = (int32_t)(rnd_below(1 << 23) / (size_t)n) - (1 << 22) / n;
            const ptrdiff_t at = (ptrdiff_t)i * t->stride + j;
            int16_t *split = t->split + at / 4 * 8 + at % 4;
            t->coef[at] = v;
            split[0] = (int16_t)(v >> 11);
            split[4] = (int16_t)(v & 2047);
        }
    }
}

/* Over-read bytes are there and random: they must not count. */
CHECK_KERNEL(resample_h)
{
    static const int channel_counts[] = { 1, 3, 4 };
    for (int i = 0; i < 600; i++) {
        const int n_in = 1 + (int)rnd_size(MAX_IN), n_out = 1 + (int)rnd_size(MAX_OUT - 1);
        const int c = channel_counts[rnd_below(3)], n_rows = 1 + (int)rnd_below(4);
        dr__taps t = taps_random(n_in, n_out);
        if (rnd_below(3) == 0)
            shake(&t);
        const uint8_t *src[4];
        uint8_t *want_rows[4], *got_rows[4];
        struct guarded want[4], got[4];
        for (int y = 0; y < n_rows; y++) {
            src[y] = guarded_random((size_t)(n_in * c) + DR__RESAMPLE_OVERREAD(&t, c)).p;
            want[y] = guarded_blank((size_t)(n_out * c));
            got[y] = guarded_blank((size_t)(n_out * c));
            want_rows[y] = want[y].p;
            got_rows[y] = got[y].p;
        }
        ref->resample_h(want_rows, src, n_rows, c, &t);
        simd->resample_h(got_rows, src, n_rows, c, &t);
        for (int y = 0; y < n_rows; y++)
            expect_same(&got[y], &want[y], "in=%d out=%d channels=%d row %d of %d", n_in, n_out, c, y, n_rows);
    }
}

CHECK_KERNEL(resample_v)
{
    static const uint8_t *rows[MAX_IN + 1];
    for (int i = 0; i < 600; i++) {
        const int n_in = 1 + (int)rnd_size(MAX_IN), n_out = 1 + (int)rnd_size(MAX_OUT - 1);
        const size_t bytes = rnd_size(130), y = rnd_below((size_t)n_out);
        dr__taps t = taps_random(n_in, n_out);
        if (rnd_below(3) == 0)
            shake(&t);
        const struct guarded src = guarded_random(bytes * (size_t)t.size[y]);
        for (int j = 0; j < t.size[y]; j++)
            rows[j] = src.p + (size_t)j * bytes;
        const struct guarded want = guarded_blank(bytes), got = guarded_blank(bytes);
        ref->resample_v(want.p, rows, &t, y, bytes);
        simd->resample_v(got.p, rows, &t, y, bytes);
        expect_same(&got, &want, "in=%d out=%d y=%zu taps=%d bytes=%zu", n_in, n_out, y, t.size[y], bytes);
    }
}
