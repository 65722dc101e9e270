/* test_geometry: crops, padding, flips, turns and erasing on images small enough to write down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/affine.h"
#include "op_harness.h"

/* A grey image from its bytes. */
static dr_view grey(uint8_t *bytes, int64_t h, int64_t w)
{
    dr_desc d = dr__desc_image(DR_U8, h, w, 1);
    return dr__view_dense(&d, bytes);
}

static void expect(const char *op, const char *params, const dr_view *in, int64_t h, int64_t w, const uint8_t *want)
{
    struct op_run r;
    if (harness_do(&r, op, params, 0, in) != DR_OK)
        fail_msg("%s %s: %s", op, params, r.err.text);
    assert_int_equal(dr__height(&r.plan.desc), h);
    assert_int_equal(dr__width(&r.plan.desc), w);
    assert_memory_equal(r.out.data, want, r.out_bytes);
    assert_true(harness_guards_intact(&r));
    harness_close(&r);
}

/* The op must fail at some step, with that text in the message. */
static void expect_error(const char *op, const char *params, const dr_view *in, const char *text)
{
    struct op_run r;
    dr_status status = harness_do(&r, op, params, 0, in);
    if (status >= 0 || !strstr(r.err.text, text) || !strstr(r.err.text, op))
        fail_msg("%s %s: expected \"%s\", got %d %s", op, params, text, (int)status, r.err.text);
    harness_close(&r);
}

static void crops(void **state)
{
    uint8_t image[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    dr_view in = grey(image, 3, 3);
    (void)state;
    expect("crop", "{\"top\": 1, \"left\": 1, \"height\": 2, \"width\": 2}", &in, 2, 2, (uint8_t[]){ 5, 6, 8, 9 });
    expect("crop", "{\"top\": -1, \"left\": 2, \"height\": 2, \"width\": 2}", &in, 2, 2, (uint8_t[]){ 0, 0, 3, 0 });
    expect("center_crop", "{\"size\": 1}", &in, 1, 1, (uint8_t[]){ 5 });
    /* (3 - 2) / 2 = 0.5 rounds to even: the crop begins at 0. */
    expect("center_crop", "{\"size\": 2}", &in, 2, 2, (uint8_t[]){ 1, 2, 4, 5 });
    expect("center_crop", "{\"size\": [1, 6]}", &in, 1, 6, (uint8_t[]){ 0, 4, 5, 6, 0, 0 });
}

static void paddings(void **state)
{
    uint8_t image[] = { 1, 2, 3 };
    dr_view in = grey(image, 1, 3);
    (void)state;
    expect("pad", "{\"padding\": [2, 0], \"fill\": 9}", &in, 1, 7, (uint8_t[]){ 9, 9, 1, 2, 3, 9, 9 });
    expect("pad", "{\"padding\": [2, 0], \"padding_mode\": \"edge\"}", &in, 1, 7, (uint8_t[]){ 1, 1, 1, 2, 3, 3, 3 });
    expect("pad", "{\"padding\": [4, 0], \"padding_mode\": \"reflect\"}", &in, 1, 11,
           (uint8_t[]){ 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3 });
    expect("pad", "{\"padding\": [4, 0], \"padding_mode\": \"symmetric\"}", &in, 1, 11,
           (uint8_t[]){ 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1 });
    expect("pad", "{\"padding\": [-1, 0, 2, 0], \"padding_mode\": \"reflect\"}", &in, 1, 4, (uint8_t[]){ 2, 3, 2, 3 });
    expect_error("pad", "{\"padding\": [1, 2, 3]}", &in, "values, got 3");
    expect_error("pad", "{\"padding\": [-2, 0]}", &in, "leaves nothing");
    expect_error("pad", "{\"padding\": 1, \"fill\": [1, 2]}", &in,
                 "fill must have 1 value or 1, one for each channel, got 2");
}

static void wide_elements(void **state)
{
    dr_view in = harness_image(DR_F64, 4, 5, 2);
    struct op_run r;
    (void)state;
    assert_int_equal(harness_do(&r, "pad", "{\"padding\": [1, 0, 0, 0], \"fill\": [0.5, -2]}", 0, &in), DR_OK);
    double fill[2];
    memcpy(fill, r.out.data, sizeof fill);
    assert_true(fill[0] == 0.5 && fill[1] == -2.0);
    assert_memory_equal(r.out.data + 16, in.data, 5 * 16);
    harness_close(&r);
    dr__free(in.data);
}

static void random_crops_fit(void **state)
{
    dr_view in = harness_image(DR_U8, 20, 30, 3);
    (void)state;
    expect_error("random_crop", "{\"size\": [21, 10]}", &in, "10x21 is larger than the image 30x20");
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct op_run r;
        assert_int_equal(harness_do(&r, "random_crop", "{\"size\": [7, 9]}", seed, &in), DR_OK);
        json_t *draw = dr__params_write(r.op.def->draws, r.par, 1);
        int64_t top = json_integer_value(json_object_get(draw, "top"));
        int64_t left = json_integer_value(json_object_get(draw, "left"));
        for (int64_t y = 0; y < 7; y++)
            assert_memory_equal(r.out.data + y * r.out.stride, in.data + (top + y) * in.stride + left * 3, 27);
        json_decref(draw);
        harness_close(&r);
    }
    dr__free(in.data);
}

static void flips(void **state)
{
    uint8_t image[] = { 1, 2, 3, 4, 5, 6 };
    dr_view in = grey(image, 2, 3);
    (void)state;
    expect("random_vertical_flip", "{\"p\": 1}", &in, 2, 3, (uint8_t[]){ 4, 5, 6, 1, 2, 3 });
    expect("random_vertical_flip", "{\"p\": 0}", &in, 2, 3, image);
}

static void quarter_turns(void **state)
{
    uint8_t image[] = { 1, 2, 3, 4, 5, 6 };
    dr_view in = grey(image, 2, 3);
    (void)state;
    expect("random_rotation", "{\"degrees\": [0, 0]}", &in, 2, 3, image);
    expect("random_rotation", "{\"degrees\": [90, 90], \"expand\": true}", &in, 3, 2, (uint8_t[]){ 3, 6, 2, 5, 1, 4 });
    expect("random_rotation", "{\"degrees\": [180, 180]}", &in, 2, 3, (uint8_t[]){ 6, 5, 4, 3, 2, 1 });
    expect("random_rotation", "{\"degrees\": [-90, -90], \"expand\": true}", &in, 3, 2,
           (uint8_t[]){ 4, 1, 5, 2, 6, 3 });
    expect_error("random_rotation", "{\"degrees\": -5}", &in, "must not be negative");
    expect_error("random_rotation", "{\"degrees\": 5, \"center\": 3}", &in, "center");
}

static void affine_maps(void **state)
{
    uint8_t image[] = { 1, 2, 3, 4, 5, 6 };
    dr_view in = grey(image, 2, 3);
    uint8_t out[6];
    const uint8_t fill = 9;
    dr__raster src = { image, 3, 3, 2 }, dst = { out, 3, 3, 2 };
    (void)state;
    expect("random_affine", "{\"degrees\": 0}", &in, 2, 3, image);
    expect_error("random_affine", "{\"degrees\": 0, \"scale\": 2}", &in, "two numbers");
    expect_error("random_affine", "{\"degrees\": 0, \"shear\": [1, 2, 3]}", &in, "1, 2 or 4");
    for (int filter = DR__AFFINE_NEAREST; filter <= DR__AFFINE_BICUBIC; filter++) {
        const double shift[6] = { 1, 0, 1, 0, 1, 0 }; /* one column to the left */
        dr__affine_u8(&dst, &src, 1, shift, (dr__affine_filter)filter, &fill);
        assert_memory_equal(out, ((uint8_t[]){ 2, 3, 9, 5, 6, 9 }), 6);
    }
    uint8_t line[] = { 10, 20, 30 };
    const double half[6] = { 1, 0, 0.5, 0, 1, 0 }; /* half a column: between pixels */
    src = (dr__raster){ line, 3, 3, 1 }, dst = (dr__raster){ out, 3, 3, 1 };
    dr__affine_u8(&dst, &src, 1, half, DR__AFFINE_BILINEAR, &fill);
    assert_memory_equal(out, ((uint8_t[]){ 15, 25, 9 }), 3);
    dr__affine_u8(&dst, &src, 1, half, DR__AFFINE_BICUBIC, &fill);
    assert_memory_equal(out, ((uint8_t[]){ 13, 26, 9 }), 3);
    src = (dr__raster){ image, 3, 3, 2 }, dst = (dr__raster){ out, 3, 3, 2 };
    const double far[6] = { 1, 0.5, 1e6, 0.5, 1, 0 }; /* too far for fixed point */
    dr__affine_u8(&dst, &src, 1, far, DR__AFFINE_NEAREST, &fill);
    assert_memory_equal(out, ((uint8_t[]){ 9, 9, 9, 9, 9, 9 }), 6);
}

static void resizing(void **state)
{
    uint8_t image[] = { 10, 20, 30, 40 };
    dr_view in = grey(image, 1, 4), floats = harness_image(DR_F32, 8, 8, 3);
    (void)state;
    expect("resize", "{\"size\": [1, 2], \"interpolation\": \"box\"}", &in, 1, 2, (uint8_t[]){ 15, 35 });
    expect("resize", "{\"size\": [1, 2], \"interpolation\": \"nearest\"}", &in, 1, 2, (uint8_t[]){ 20, 40 });
    expect("resize", "{\"size\": 1}", &in, 1, 4, image);
    expect_error("resize", "{\"size\": null}", &in, "max_size must be given");
    expect_error("resize", "{\"size\": 5, \"max_size\": 5}", &in, "above size 5, got 5");
    expect_error("resize", "{\"size\": [5, 5], \"max_size\": 9}", &in, "got two");
    expect_error("resize", "{\"size\": null, \"max_size\": 2}", &in, "to 2x0");
    expect_error("resize", "{\"size\": 5}", &floats, "before to_dtype and normalize");
    expect_error("random_resized_crop", "{\"size\": 5}", &floats, "before to_dtype and normalize");
    expect_error("random_resized_crop", "{\"size\": 5, \"ratio\": [0, 1]}", &in, "must be positive");
    dr__free(floats.data);
}

static void erasing(void **state)
{
    dr_view in = harness_image(DR_U8, 40, 30, 3);
    (void)state;
    expect("random_erasing", "{\"p\": 0}", &in, 40, 30, in.data);
    expect_error("random_erasing", "{\"value\": [1, 2]}", &in,
                 "value must have 1 number or 3, one for each channel, got 2");
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct op_run r;
        assert_int_equal(harness_do(&r, "random_erasing", "{\"p\": 1, \"value\": [300, 7.9, -4]}", seed, &in), DR_OK);
        json_t *draw = dr__params_write(r.op.def->draws, r.par, 1);
        json_int_t top, left, height, width;
        json_unpack(draw, "{s:I, s:I, s:I, s:I}", "top", &top, "left", &left, "height", &height, "width", &width);
        assert_true(top >= 0 && top + height <= 40 && left >= 0 && left + width <= 30);
        for (int64_t i = 0; i < 40 * 30; i++) {
            bool inside = i / 30 >= top && i / 30 < top + height && i % 30 >= left && i % 30 < left + width;
            const uint8_t erased[] = { 255, 7, 0 };
            assert_memory_equal(r.out.data + i * 3, inside ? erased : in.data + i * 3, 3);
        }
        json_decref(draw);
        harness_close(&r);
    }
    dr__free(in.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops),         cmocka_unit_test(paddings),
        cmocka_unit_test(wide_elements), cmocka_unit_test(random_crops_fit),
        cmocka_unit_test(flips),         cmocka_unit_test(quarter_turns),
        cmocka_unit_test(affine_maps),   cmocka_unit_test(resizing),
        cmocka_unit_test(erasing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
