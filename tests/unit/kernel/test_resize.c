/* Resizing an image that comes in bands: each way of cutting it gives what two plain passes over the whole give.
 *
 * That those are PIL's is tested where PIL is (tests/python/test_resize_parity.py).  DRAPPS_TEST_SEED=n draws other
 * images; DRAPPS_TEST_ROUNDS=n draws more. */
#include "unit/cm.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "kernel/cpu.h"
#include "kernel/resize.h"

static uint64_t x;

static uint64_t setting(const char *name, uint64_t standard)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : standard;
}

static int dice(int lo, int hi)
{
    x = x * 6364136223846793005u + 1442695040888963407u;
    return lo + (int)((x >> 33) % (uint64_t)(hi - lo + 1));
}

/* --- two passes over the whole image --- */

static uint8_t weighted(const uint8_t *from, size_t step, const dr__taps *t, int i)
{
    int32_t sum = 1 << 21;
    for (int j = 0; j < t->size[i]; j++)
        sum += from[(size_t)(t->start[i] + j) * step] * t->coef[(size_t)i * (size_t)t->stride + (size_t)j];
    const int32_t v = sum >> 22;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static uint8_t *across(const uint8_t *in, int w, int h, const dr__resize *r)
{
    const size_t c = (size_t)r->spec.channels, out_w = (size_t)r->spec.out_w;
    uint8_t *out = malloc(out_w * (size_t)h * c);
    for (size_t y = 0; y < (size_t)h; y++)
        for (size_t i = 0; i < out_w * c; i++)
            out[y * out_w * c + i] = weighted(in + y * (size_t)w * c + i % c, c, &r->h, (int)(i / c));
    return out;
}

static uint8_t *down(const uint8_t *in, int w, const dr__resize *r)
{
    const size_t row = (size_t)w * (size_t)r->spec.channels;
    uint8_t *out = malloc(row * (size_t)r->spec.out_h);
    for (int y = 0; y < r->spec.out_h; y++)
        for (size_t i = 0; i < row; i++)
            out[(size_t)y * row + i] = weighted(in + i, row, &r->v, y);
    return out;
}

static uint8_t *nearest(const uint8_t *in, const dr__resize *r)
{
    const size_t c = (size_t)r->spec.channels, out_w = (size_t)r->spec.out_w, in_w = (size_t)r->spec.in_w;
    uint8_t *out = calloc(out_w * (size_t)r->spec.out_h, c);
    for (size_t y = 0; y < (size_t)r->spec.out_h; y++)
        for (size_t i = 0; i < out_w; i++)
            if (r->v.start[y] >= 0 && r->h.start[i] >= 0)
                memcpy(out + (y * out_w + i) * c, in + ((size_t)r->v.start[y] * in_w + (size_t)r->h.start[i]) * c, c);
    return out;
}

static uint8_t *plainly(const uint8_t *in, const dr__resize *r)
{
    const dr__resize_spec *s = &r->spec;
    const size_t bytes = (size_t)s->in_w * (size_t)s->in_h * (size_t)s->channels;
    uint8_t *first, *second;
    switch (r->order) {
    case DR__RESIZE_COPY:
        return memcpy(malloc(bytes), in, bytes);
    case DR__RESIZE_NEAREST:
        return nearest(in, r);
    case DR__RESIZE_H:
        return across(in, s->in_w, s->in_h, r);
    case DR__RESIZE_V:
        return down(in, s->in_w, r);
    case DR__RESIZE_HV:
        first = across(in, s->in_w, s->in_h, r);
        second = down(first, s->out_w, r);
        break;
    default:
        first = down(in, s->in_w, r);
        second = across(first, s->in_w, s->out_h, r);
        break;
    }
    free(first);
    return second;
}

/* --- the same in bands --- */

struct result {
    uint8_t *pixels;
    size_t row;
    int y;
};

static void keep_row(void *user, const uint8_t *row, int y)
{
    struct result *to = user;
    assert_int_equal(y, to->y);
    memcpy(to->pixels + (size_t)y * to->row, row, to->row);
    to->y++;
}

/* A copy of n rows with no byte to spare, so that sanitizers see what is read too far or kept too long. */
static uint8_t *band_of(const uint8_t *from, size_t row, int n, size_t stride, size_t slack)
{
    uint8_t *band = malloc((size_t)(n - 1) * stride + row + slack);
    memset(band, 0x5a, (size_t)(n - 1) * stride + row + slack);
    for (int i = 0; i < n; i++)
        memcpy(band + (size_t)i * stride, from + (size_t)i * row, row);
    return band;
}

static void push(const dr__resize *r, const dr__kernels *k, const uint8_t *in, int most, size_t slack,
                 struct result *to)
{
    const size_t row = (size_t)r->spec.in_w * (size_t)r->spec.channels;
    dr__resize_flow flow;
    to->y = 0;
    dr__resize_begin(&flow, r, k, keep_row, to);
    for (int y = 0; y < r->spec.in_h;) {
        const int height = most > 0 ? most : dice(1, -most), n = DR_MIN(height, r->spec.in_h - y);
        const size_t stride = row + (size_t)dice(0, 9);
        uint8_t *band = band_of(in + (size_t)y * row, row, n, stride, slack);
        dr__resize_take(&flow, band, (ptrdiff_t)stride, n, slack);
        free(band);
        y += n;
    }
    assert_int_equal(to->y, r->spec.out_h);
}

static void compare(const dr__resize *r, const uint8_t *want, const struct result *got, const char *how, int n)
{
    const dr__resize_spec *s = &r->spec;
    if (memcmp(want, got->pixels, got->row * (size_t)s->out_h))
        fail_msg("%s %d: %dx%d -> %dx%d, %d channels, filter %d, order %d", how, n, s->in_w, s->in_h, s->out_w,
                 s->out_h, s->channels, (int)s->filter, (int)r->order);
}

static void check(const dr__resize_spec *spec, unsigned *orders)
{
    static const int heights[] = { 1, 2, 3, 4, 5, 8, 16, -20 }; /* negative: another one for each band */
    static const size_t slacks[] = { 0, 70, 1024 };
    size_t bytes = 0, pixels = (size_t)spec->in_w * (size_t)spec->in_h * (size_t)spec->channels;
    dr__resize r;
    assert_true(dr__resize_scratch(spec, &bytes));
    void *scratch = dr__alloc_aligned(DR_MAX(bytes, 1));
    uint8_t *in = malloc(pixels);
    for (size_t i = 0; i < pixels; i++)
        in[i] = (uint8_t)dice(0, 255);
    dr__resize_plan(&r, spec, scratch);
    *orders |= 1u << r.order;
    uint8_t *want = plainly(in, &r);
    struct result got = { .row = (size_t)spec->out_w * (size_t)spec->channels };
    got.pixels = malloc(got.row * (size_t)spec->out_h);
    for (int level = DR__CPU_C; level <= (int)dr__cpu_has(); level++) {
        dr__kernels k;
        dr__kernels_fill(&k, (dr__cpu_level)level);
        got.y = 0;
        dr__resize_run(&r, &k, in, (ptrdiff_t)spec->in_w * spec->channels, keep_row, &got);
        compare(&r, want, &got, "whole, level", level);
        for (size_t i = 0; i < DR_COUNT(heights); i++) {
            push(&r, &k, in, heights[i], slacks[dice(0, 2)], &got);
            compare(&r, want, &got, "bands of", heights[i]);
        }
    }
    free(got.pixels);
    free(want);
    free(in);
    dr__free_aligned(scratch);
}

static int side(int most)
{
    return dice(0, 9) ? dice(1, most) : dice(1, 3);
}

static void bands_of_any_height(void **state)
{
    (void)state;
    static const int channels[] = { 1, 3, 4 };
    unsigned orders = 0;
    for (uint64_t i = 0; i < setting("DRAPPS_TEST_ROUNDS", 240); i++) {
        dr__resize_spec s = { .in_w = side(70), .in_h = side(90), .out_w = side(60), .out_h = side(60) };
        s.channels = channels[i % 3];
        s.filter = (dr__filter)(i % 6);
        if (dice(0, 2) == 0 && (s.filter == DR__FILTER_BILINEAR || s.filter == DR__FILTER_BICUBIC))
            s.rule = dice(0, 1) ? DR__RULE_TORCH : DR__RULE_TORCH_ALIASED;
        if (dice(0, 5) == 0)
            s.out_w = s.in_w;
        if (dice(0, 5) == 0)
            s.out_h = s.in_h;
        check(&s, &orders);
    }
    if (setting("DRAPPS_TEST_ROUNDS", 240) >= 240)
        assert_int_equal(orders, (1u << (DR__RESIZE_VH + 1)) - 1); /* each was met */
}

/* What is read past a row grows with the scale: here it is more than any slack. */
static void far_smaller(void **state)
{
    (void)state;
    unsigned orders = 0;
    for (int filter = DR__FILTER_NEAREST; filter <= (int)DR__FILTER_HAMMING; filter++) {
        check(&(dr__resize_spec){ 3000, 21, 2, 20, 3, (dr__filter)filter, DR__RULE_PIL }, &orders);
        check(&(dr__resize_spec){ 9, 2000, 7, 3, 3, (dr__filter)filter, DR__RULE_PIL }, &orders);
    }
}

/* Decoding may have to start over in the middle. */
static void begun_again(void **state)
{
    (void)state;
    const dr__resize_spec specs[] = { { 40, 50, 21, 17, 3, DR__FILTER_BICUBIC, DR__RULE_PIL },
                                      { 40, 50, 39, 17, 3, DR__FILTER_BILINEAR, DR__RULE_PIL },
                                      { 40, 50, 40, 60, 1, DR__FILTER_BILINEAR, DR__RULE_PIL } };
    uint8_t in[40 * 50 * 3];
    dr__kernels k;
    dr__kernels_fill(&k, dr__cpu_has());
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)dice(0, 255);
    for (size_t i = 0; i < DR_COUNT(specs); i++) {
        size_t bytes = 0, row = (size_t)specs[i].out_w * (size_t)specs[i].channels;
        assert_true(dr__resize_scratch(&specs[i], &bytes));
        void *scratch = dr__alloc_aligned(bytes);
        struct result got = { .pixels = malloc(row * (size_t)specs[i].out_h), .row = row };
        dr__resize r;
        dr__resize_flow flow;
        dr__resize_plan(&r, &specs[i], scratch);
        uint8_t *want = plainly(in, &r);
        dr__resize_begin(&flow, &r, &k, keep_row, &got);
        dr__resize_take(&flow, in, (ptrdiff_t)specs[i].in_w * specs[i].channels, 33, 0);
        push(&r, &k, in, 7, 0, &got);
        compare(&r, want, &got, "begun again", (int)i);
        free(want);
        free(got.pixels);
        dr__free_aligned(scratch);
    }
}

int main(void)
{
    x = setting("DRAPPS_TEST_SEED", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_of_any_height),
        cmocka_unit_test(far_smaller),
        cmocka_unit_test(begun_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
