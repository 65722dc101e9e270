/* test_op_table: every op of the table keeps the promises of op.h.
 *
 * An op that must be given settings has a row in `given`.  Each op runs on uint8 images of several sizes and channels,
 * on volumes and on their masks; one that refuses a kind of array must say so in plan, naming itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op_harness.h"

static const struct {
    const char *op, *params;
} given[] = {
    { "center_crop", "{\"size\": [20, 70]}" },
    { "crop", "{\"top\": -2, \"left\": 3, \"height\": 30, \"width\": 20}" },
    { "gaussian_blur", "{\"kernel_size\": 5}" },
    { "normalize", "{\"mean\": 0.45, \"std\": 0.22}" },
    { "pad", "{\"padding\": [3, 5], \"padding_mode\": \"reflect\"}" },
    { "pad_volume", "{\"size\": [9, 14, 11]}" },
    { "random_adjust_sharpness", "{\"sharpness_factor\": 1.7}" },
    { "random_affine", "{\"degrees\": 30, \"translate\": [0.2, 0.1], \"interpolation\": \"bilinear\"}" },
    { "random_apply", "{\"transforms\": [{\"op\": \"random_horizontal_flip\"}]}" },
    { "random_balanced_crop", "{\"size\": [5, 6, 4], \"oversampling\": 0}" },
    { "random_brightness", "{\"p\": 0.5}" },
    { "random_choice", "{\"transforms\": [{\"op\": \"random_horizontal_flip\"}, {\"op\": \"random_vertical_flip\"}]}" },
    { "random_order", "{\"transforms\": [{\"op\": \"random_horizontal_flip\"}, {\"op\": \"random_vertical_flip\"}]}" },
    { "random_crop", "{\"size\": 32, \"padding\": 4, \"pad_if_needed\": true, \"padding_mode\": \"edge\"}" },
    { "random_gaussian_noise", "{\"p\": 0.5}" },
    { "random_posterize", "{\"bits\": 3}" },
    { "random_resized_crop", "{\"size\": [24, 40]}" },
    { "random_rotation", "{\"degrees\": 90, \"expand\": true, \"interpolation\": \"bicubic\"}" },
    { "random_solarize", "{\"threshold\": 100}" },
    { "resample_volume", "{\"spacing\": [1.5, 1.2, 1.7]}" },
    { "resize", "{\"size\": 28}" },
    { "to_dtype", "{\"scale\": true}" },
};

static const char *params_of(const char *op)
{
    for (size_t i = 0; i < DR_COUNT(given); i++)
        if (!strcmp(given[i].op, op))
            return given[i].params;
    return "{}";
}

static bool runs_on_images(const dr_op_def *def)
{
    return !(def->flags & (DR_OP_BATCH | DR_OP_DECODE));
}

static void open_op(struct op_run *r, const dr_op_def *def)
{
    if (harness_open(r, def->name, params_of(def->name)) != DR_OK)
        fail_msg("%s %s: %s", def->name, params_of(def->name), r->err.text);
}

static void table_is_sorted_and_complete(void **state)
{
    (void)state;
    for (const dr_op_def *const *def = dr__op_table; *def; def++) {
        if (def[1])
            assert_true(strcmp((*def)->name, def[1]->name) < 0);
        assert_ptr_equal(dr__op_find((*def)->name), *def);
        assert_true((*def)->version >= 1);
        assert_non_null((*def)->summary);
        assert_int_equal(!!((*def)->flags & DR_OP_RANDOM), (*def)->draws != NULL);
        assert_int_equal(!!((*def)->flags & DR_OP_BATCH), (*def)->batch != NULL);
        assert_int_equal(!!((*def)->flags & DR_OP_POINTWISE_U8), (*def)->lut != NULL);
        for (const dr_param *p = (*def)->params; p && p->name; p++)
            assert_non_null(p->doc);
    }
}

/* Settings survive a round trip through JSON, and wrong ones are refused by name. */
static void settings_round_trip(void **state)
{
    (void)state;
    for (const dr_op_def *const *def = dr__op_table; *def; def++) {
        struct op_run a, b;
        open_op(&a, *def);
        json_t *all = dr__params_write((*def)->params, a.op.conf, 1);
        char *text = json_dumps(all, JSON_REAL_PRECISION(17));
        if (harness_open(&b, (*def)->name, text) != DR_OK)
            fail_msg("%s: %s", (*def)->name, b.err.text);
        json_t *again = dr__params_write((*def)->params, b.op.conf, 1);
        if (!json_equal(all, again))
            fail_msg("%s: settings change by writing and reading: %s", (*def)->name, text);
        json_decref(again);
        json_decref(all);
        free(text);
        harness_close(&a);
        harness_close(&b);
        assert_int_equal(harness_open(&b, (*def)->name, "{\"no such\": 1}"), DR_ERR_ARG);
        assert_non_null(strstr(b.err.text, (*def)->name));
        harness_close(&b);
    }
}

static void open_survives_failing_malloc(void **state)
{
    (void)state;
    for (const dr_op_def *const *def = dr__op_table; *def; def++) {
        dr_status status = DR_ERR_NOMEM;
        for (long n = 1; status != DR_OK; n++) {
            struct op_run r;
            assert_true(n < 1000);
            dr__alloc_fail_at(n, false);
            status = harness_open(&r, (*def)->name, params_of((*def)->name));
            dr__alloc_fail_at(0, false);
            if (status != DR_OK)
                assert_int_equal(status, DR_ERR_NOMEM);
            harness_close(&r);
        }
    }
}

/* What plan knows when the graph is built must come true for each sample. */
static void check_early_plan(struct op_run *r, const dr_desc *in)
{
    dr_desc unknown = dr__is_volume(in) ? *in : dr__desc_resized(in, DR_UNKNOWN, DR_UNKNOWN);
    for (int i = 1; dr__is_volume(in) && i < 4; i++)
        unknown.dims[i] = DR_UNKNOWN;
    dr_plan early = { 0 };
    if (r->op.def->plan(r->op.conf, NULL, &unknown, &early, &r->err) != DR_OK)
        fail_msg("%s: early plan: %s", r->op.def->name, r->err.text);
    assert_int_equal(early.desc.dtype, r->plan.desc.dtype);
    assert_int_equal(early.desc.n_dims, r->plan.desc.n_dims);
    for (int i = 0; i < early.desc.n_dims; i++)
        if (early.desc.dims[i] != DR_UNKNOWN)
            assert_int_equal(early.desc.dims[i], r->plan.desc.dims[i]);
}

static void expect_same(const struct op_run *r, const uint8_t *want, const dr_view *in, uint64_t seed, const char *what)
{
    char text[128];
    if (!harness_guards_intact(r))
        fail_msg("%s, %s: wrote outside its output or scratch", r->op.def->name, what);
    if (memcmp(r->out.data, want, r->out_bytes))
        fail_msg("%s on %s, seed %d: differs %s", r->op.def->name, dr__desc_text_of(&in->desc, text, sizeof text),
                 (int)seed, what);
}

/* Only the region that the op asked for, in memory of exactly that size. */
static dr_view window_of(const dr_view *in, const dr_rect *need)
{
    size_t pixel = dr__row_bytes(&in->desc) / (size_t)dr__width(&in->desc), row = (size_t)need->w * pixel;
    dr_view v = {
        .data = dr__alloc(row * (size_t)need->h), .stride = (ptrdiff_t)row, .desc = in->desc, .window = *need
    };
    for (int64_t y = 0; y < need->h; y++)
        memcpy(v.data + y * v.stride, in->data + (need->y + y) * in->stride + need->x * (int64_t)pixel, row);
    return v;
}

static void check_window(struct op_run *r, const dr_view *in, const uint8_t *want, uint64_t seed)
{
    dr_rect need = in->window;
    if (r->op.def->region)
        r->op.def->region(r->op.conf, r->par, &in->desc, &need);
    assert_true(need.x >= 0 && need.y >= 0 && need.w > 0 && need.h > 0);
    assert_true(need.x + need.w <= in->window.w && need.y + need.h <= in->window.h);
    dr_view window = window_of(in, &need);
    assert_int_equal(harness_run(r, dr__kernels_best(), &window), DR_OK);
    expect_same(r, want, in, seed, "from a window");
    dr__free(window.data);
}

struct collect {
    dr__row_sink sink;
    dr_view *out;
    int64_t next;
};

static void collect_row(dr__row_sink *sink, int64_t y, const uint8_t *row)
{
    struct collect *c = (struct collect *)sink;
    assert_int_equal(y, c->next++);
    memcpy(c->out->data + y * c->out->stride, row, dr__row_bytes(&c->out->desc));
}

static void check_rows(struct op_run *r, const dr_view *in, const uint8_t *want, uint64_t seed)
{
    assert_int_equal(harness_plan(r, &in->desc), DR_OK);
    struct collect c = { .sink = { collect_row }, .out = &r->out };
    dr_task task = harness_task(r, dr__kernels_best());
    assert_int_equal(r->op.def->rows(&task, r->par, in, &r->plan.desc, &c.sink), DR_OK);
    assert_int_equal(c.next, dr__height(&r->plan.desc));
    expect_same(r, want, in, seed, "row by row");
}

/* One image and seed in all ways that must agree. */
static void check_runs(struct op_run *r, const dr_view *in, uint64_t seed)
{
    size_t in_bytes = 0;
    dr__desc_bytes_dense(&in->desc, &in_bytes);
    uint8_t *before = dr__alloc(in_bytes);
    memcpy(before, in->data, in_bytes);
    r->prefill = 0;
    if (harness_run(r, dr__kernels_best(), in) != DR_OK)
        fail_msg("%s: %s", r->op.def->name, r->err.text);
    uint8_t *want = dr__alloc(r->out_bytes ? r->out_bytes : 1);
    memcpy(want, r->out.data, r->out_bytes);
    check_early_plan(r, &in->desc);
    r->prefill = 0xff; /* nothing may stay unwritten, nothing may be read that was not written */
    assert_int_equal(harness_run(r, dr__kernels_best(), in), DR_OK);
    expect_same(r, want, in, seed, "by what memory held before");
    assert_int_equal(harness_run(r, dr__kernels_c(), in), DR_OK);
    expect_same(r, want, in, seed, "between C and the best kernels");
    if (r->op.def->flags & DR_OP_WINDOW)
        check_window(r, in, want, seed);
    if (r->op.def->rows && r->plan.desc.dtype == DR_U8)
        check_rows(r, in, want, seed);
    assert_memory_equal(before, in->data, in_bytes);
    dr__free(want);
    dr__free(before);
}

static bool takes(const dr_op_def *def, const dr_desc *in);

static void check_image(const dr_op_def *def, const dr_view *in)
{
    struct op_run r;
    dr_plan plan = { 0 };
    dr_view boxes = harness_boxes();
    open_op(&r, def);
    r.other = takes(def, &boxes.desc) ? &boxes : NULL;
    if (def->plan(r.op.conf, NULL, &in->desc, &plan, &r.err) != DR_OK) {
        if (!strstr(r.err.text, def->name) && !def->par_bytes) /* refused, in its own name or that of an op inside */
            fail_msg("%s: refuses with \"%s\"", def->name, r.err.text);
        harness_close(&r);
        return;
    }
    for (uint64_t seed = 0; seed < 6; seed++) {
        if (harness_draw(&r, &(dr__rng_name){ .seed = seed }, &in->desc) != DR_OK)
            fail_msg("%s: %s", def->name, r.err.text);
        check_runs(&r, in, seed);
    }
    harness_close(&r);
}

static void runs_agree(void **state)
{
    static const int64_t sizes[][3] = { { 37, 53, 3 }, { 64, 64, 1 }, { 41, 90, 4 }, { 9, 7, 3 }, { 50, 8, 1 } };
    (void)state;
    for (const dr_op_def *const *def = dr__op_table; *def; def++)
        for (size_t i = 0; runs_on_images(*def) && i < DR_COUNT(sizes); i++) {
            dr_view in = harness_image(DR_U8, sizes[i][0], sizes[i][1], sizes[i][2]);
            check_image(*def, &in);
            dr__free(in.data);
        }
}

static void volumes_agree(void **state)
{
    static const int64_t sizes[][4] = { { 1, 7, 9, 6 }, { 2, 5, 6, 13 }, { 1, 12, 20, 17 } };
    (void)state;
    for (const dr_op_def *const *def = dr__op_table; *def; def++)
        for (size_t i = 0; runs_on_images(*def) && i < 2 * DR_COUNT(sizes); i++) {
            const int64_t *s = sizes[i / 2];
            dr_view in = i % 2 ? harness_volume(DR_KIND_VOLUME_MASK, DR_U8, s[0], s[1], s[2], s[3])
                               : harness_volume(DR_KIND_VOLUME, DR_F32, s[0], s[1], s[2], s[3]);
            check_image(*def, &in);
            dr__free(in.data);
        }
}

/* Boxes beside their image: what the memory held before does not matter, and no op makes more of them. */
static void boxes_agree(void **state)
{
    dr_view image = harness_image(DR_U8, 48, 64, 3), boxes = harness_boxes();
    (void)state;
    for (const dr_op_def *const *def = dr__op_table; *def; def++) {
        if (!runs_on_images(*def) || !takes(*def, &boxes.desc))
            continue;
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct op_run r;
            open_op(&r, *def);
            r.other = &image;
            assert_int_equal(harness_draw(&r, &(dr__rng_name){ .seed = seed }, &image.desc), DR_OK);
            if (harness_run(&r, dr__kernels_best(), &boxes) != DR_OK)
                fail_msg("%s: %s", (*def)->name, r.err.text);
            assert_true(r.plan.desc.dims[0] <= boxes.desc.dims[0]);
            uint8_t want[256];
            memcpy(want, r.out.data, r.out_bytes);
            r.prefill = 0xff;
            assert_int_equal(harness_run(&r, dr__kernels_c(), &boxes), DR_OK);
            expect_same(&r, want, &boxes, seed, "by what memory held before");
            harness_close(&r);
        }
    }
    dr__free(image.data);
}

static bool takes(const dr_op_def *def, const dr_desc *in)
{
    dr_plan plan = { 0 };
    struct op_run r;
    open_op(&r, def);
    bool taken = def->plan(r.op.conf, NULL, in, &plan, &r.err) == DR_OK;
    harness_close(&r);
    return taken;
}

/* Each op takes three-channel images, volumes or boxes: a table of refusals would pass all of the above. */
static void all_take_something(void **state)
{
    dr_desc rgb = dr__desc_image(DR_U8, 48, 64, 3), volume = dr__desc_volume(DR_F32, (int64_t[]){ 1, 20, 30, 40 });
    dr_view boxes = harness_boxes();
    (void)state;
    for (int i = 0; i < 3; i++)
        volume.spacing[i] = 1;
    for (const dr_op_def *const *def = dr__op_table; *def; def++)
        if (runs_on_images(*def) && !takes(*def, &rgb) && !takes(*def, &volume) && !takes(*def, &boxes.desc))
            fail_msg("%s takes neither an image nor a volume nor boxes", (*def)->name);
}

static void masks_run(void **state)
{
    (void)state;
    for (const dr_op_def *const *def = dr__op_table; *def; def++) {
        if (!runs_on_images(*def))
            continue;
        dr_view in = harness_image(DR_U8, 30, 44, 1);
        in.desc.kind = DR_KIND_MASK;
        check_image(*def, &in);
        dr__free(in.data);
    }
}

/* All 256 values in each channel, through run and through the table. */
static void check_lut(const dr_op_def *def, dr_dtype dtype)
{
    enum { CHANNELS = 3, N = 256 * CHANNELS };
    float values[N], table[N];
    dr_view in = harness_image(DR_U8, 1, 256, CHANNELS);
    struct op_run r;
    open_op(&r, def);
    for (int i = 0; i < N; i++) {
        in.data[i] = (uint8_t)(i / CHANNELS);
        values[i] = (float)(i % 256);
    }
    def->lut(r.op.conf, CHANNELS, dtype, values, table);
    assert_int_equal(harness_run(&r, dr__kernels_best(), &in), DR_OK);
    for (int i = 0; i < N; i++) {
        float want = table[i % CHANNELS * 256 + i / CHANNELS], got = r.out.data[i % r.out_bytes];
        if (r.plan.desc.dtype == DR_F32)
            memcpy(&got, r.out.data + (size_t)i * sizeof got, sizeof got);
        if (memcmp(&want, &got, sizeof got))
            fail_msg("%s: value %d is %.9g by run, %.9g by table", def->name, i, (double)got, (double)want);
    }
    harness_close(&r);
    dr__free(in.data);
}

static void tables_equal_runs(void **state)
{
    (void)state;
    for (const dr_op_def *const *def = dr__op_table; *def; def++)
        if ((*def)->lut && runs_on_images(*def))
            check_lut(*def, DR_U8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_sorted_and_complete),
        cmocka_unit_test(settings_round_trip),
        cmocka_unit_test(open_survives_failing_malloc),
        cmocka_unit_test(all_take_something),
        cmocka_unit_test(runs_agree),
        cmocka_unit_test(volumes_agree),
        cmocka_unit_test(boxes_agree),
        cmocka_unit_test(masks_run),
        cmocka_unit_test(tables_equal_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
