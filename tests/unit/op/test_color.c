/* test_color: colour ops on images small enough to work out by hand; test_op_parity_color.py has the large ones. */
#include "op_expect.h"

#define EXPECT(op, params, in, ...)                                                                                    \
    expect_bytes(op, params, in, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void tables(void **state)
{
    uint8_t bytes[] = { 0, 1, 99, 100, 101, 255 };
    dr_view in = image_of(bytes, 1, 6, 1);
    (void)state;
    EXPECT("random_invert", "{\"p\": 1}", &in, 255, 254, 156, 155, 154, 0);
    EXPECT("random_invert", "{\"p\": 0}", &in, 0, 1, 99, 100, 101, 255);
    EXPECT("random_solarize", "{\"p\": 1, \"threshold\": 100}", &in, 0, 1, 99, 155, 154, 0);
    EXPECT("random_solarize", "{\"p\": 1, \"threshold\": 100.5}", &in, 0, 1, 99, 100, 154, 0);
    EXPECT("random_posterize", "{\"p\": 1, \"bits\": 1}", &in, 0, 0, 0, 0, 0, 128);
    EXPECT("random_posterize", "{\"p\": 1, \"bits\": 6}", &in, 0, 0, 96, 100, 100, 252);
}

static void histograms(void **state)
{
    uint8_t two[] = { 50, 60, 70 };
    dr_view in = image_of(two, 1, 3, 1);
    (void)state;
    EXPECT("random_autocontrast", "{\"p\": 1}", &in, 0, 127, 255);
    uint8_t rgb[] = { 10, 7, 0, 20, 7, 255 }; /* green has one value: it stays */
    in = image_of(rgb, 1, 2, 3);
    EXPECT("random_autocontrast", "{\"p\": 1}", &in, 0, 7, 0, 255, 7, 255);
    EXPECT("random_equalize", "{\"p\": 1}", &in, 10, 7, 0, 20, 7, 255); /* too few pixels for a step */
}

/* 255 pixels of 3, 255 of 9 and one of 200: the step is 510 / 255 = 2, so 3 becomes (2/2 + 0) / 2 = 0, 9 becomes
 * (1 + 255) / 2 = 128, and 200 (1 + 510) / 2 = 255. */
static void equalize_counts(void **state)
{
    uint8_t bytes[511];
    dr_view in = image_of(bytes, 1, 511, 1);
    struct op_run r;
    (void)state;
    memset(bytes, 3, 255);
    memset(bytes + 255, 9, 255);
    bytes[510] = 200;
    do_op(&r, "random_equalize", "{\"p\": 1}", 0, &in);
    assert_int_equal(r.out.data[0], 0);
    assert_int_equal(r.out.data[300], 128);
    assert_int_equal(r.out.data[510], 255);
    harness_close(&r);
}

static void blends(void **state)
{
    uint8_t bytes[] = { 0, 101, 200, 255 };
    dr_view in = image_of(bytes, 1, 4, 1);
    (void)state;
    EXPECT("color_jitter", "{\"brightness\": [0.5, 0.5]}", &in, 0, 50, 100, 127);
    EXPECT("color_jitter", "{\"brightness\": [2, 2]}", &in, 0, 202, 255, 255);
    EXPECT("color_jitter", "{\"contrast\": [0, 0]}", &in, 139, 139, 139, 139); /* the mean is exactly 139 */
    EXPECT("color_jitter", "{\"contrast\": [0.5, 0.5]}", &in, 69, 120, 169, 197);
    EXPECT("color_jitter", "{\"saturation\": [0, 0], \"hue\": [0.5, 0.5]}", &in, 0, 101, 200, 255); /* grey has none */
    uint8_t rgb[] = { 255, 0, 0, 10, 20, 30 };
    in = image_of(rgb, 1, 2, 3);
    EXPECT("color_jitter", "{\"saturation\": [0, 0]}", &in, 76, 76, 76, 18, 18, 18);
    EXPECT("color_jitter", "{}", &in, 255, 0, 0, 10, 20, 30);
    EXPECT("color_jitter", "{\"brightness\": [1, 1]}", &in, 255, 0, 0, 10, 20, 30);
}

/* Half a turn is 127 of 255: red becomes the colour at 127 * 6 / 255 = 2.988 sixths, almost cyan. */
static void hue(void **state)
{
    uint8_t rgb[] = { 255, 0, 0, 90, 90, 90 };
    dr_view in = image_of(rgb, 1, 2, 3);
    (void)state;
    EXPECT("color_jitter", "{\"hue\": [0.5, 0.5]}", &in, 0, 255, 252, 90, 90, 90);
    uint8_t odd[] = { 10, 200, 30 };
    in = image_of(odd, 1, 1, 3);
    EXPECT("color_jitter", "{\"hue\": [0, 0]}", &in, 10, 200, 30); /* left out: (0, 0) means no hue at all */
}

static void greys(void **state)
{
    uint8_t rgba[] = { 255, 0, 0, 7, 0, 255, 0, 8 };
    dr_view in = image_of(rgba, 1, 2, 4);
    (void)state;
    EXPECT("grayscale", "{}", &in, 76, 150);
    EXPECT("grayscale", "{\"num_output_channels\": 3}", &in, 76, 76, 76, 150, 150, 150);
    uint8_t grey[] = { 5, 6 };
    in = image_of(grey, 1, 2, 1);
    EXPECT("grayscale", "{\"num_output_channels\": 3}", &in, 5, 5, 5, 6, 6, 6);
    EXPECT("random_grayscale", "{\"p\": 1}", &in, 5, 6);
}

/* A single bright pixel: the middle becomes 130 * 5 / 13 = 50, and blends f = 2 back to 2 * 130 - 50. */
static void sharpness(void **state)
{
    uint8_t dot[] = { 0, 0, 0, 0, 130, 0, 0, 0, 0 };
    dr_view in = image_of(dot, 3, 3, 1);
    (void)state;
    EXPECT("random_adjust_sharpness", "{\"p\": 1, \"sharpness_factor\": 0}", &in, 0, 0, 0, 0, 50, 0, 0, 0, 0);
    EXPECT("random_adjust_sharpness", "{\"p\": 1, \"sharpness_factor\": 2}", &in, 0, 0, 0, 0, 210, 0, 0, 0, 0);
    uint8_t near_half[] = { 3, 0, 0, 0, 130, 0, 0, 0, 4 }; /* 657 / 13 = 50.54 */
    in = image_of(near_half, 3, 3, 1);
    EXPECT("random_adjust_sharpness", "{\"p\": 1, \"sharpness_factor\": 0}", &in, 3, 0, 0, 0, 51, 0, 0, 0, 4);
    in = image_of(dot, 2, 2, 1);
    EXPECT("random_adjust_sharpness", "{\"p\": 1, \"sharpness_factor\": 9}", &in, 0, 0, 0, 0);
}

/* A wide window of three is nearly 1/3 each; pixels beyond the edge are reflected. */
static void blur(void **state)
{
    uint8_t row[] = { 0, 90, 30, 240 };
    dr_view in = image_of(row, 1, 4, 1);
    (void)state;
    EXPECT("gaussian_blur", "{\"kernel_size\": [3, 1], \"sigma\": 10000}", &in, 60, 40, 120, 100);
    EXPECT("gaussian_blur", "{\"kernel_size\": [3, 1], \"sigma\": 0.01}", &in, 0, 90, 30, 240);
    dr_view column = image_of(row, 4, 1, 1);
    EXPECT("gaussian_blur", "{\"kernel_size\": [1, 3], \"sigma\": 10000}", &column, 60, 40, 120, 100);
    EXPECT("gaussian_blur", "{\"kernel_size\": 1}", &in, 0, 90, 30, 240);
    expect_refused("gaussian_blur", "{\"kernel_size\": 3}", &in, "at least 2 pixels high");
    expect_refused("gaussian_blur", "{\"kernel_size\": 4}", &in, "odd");
    expect_refused("gaussian_blur", "{\"kernel_size\": 3, \"sigma\": [2, 1]}", &in, "least");
    expect_refused("gaussian_blur", "{\"kernel_size\": 3, \"sigma\": 0}", &in, "sigma");
}

static void wrong_settings(void **state)
{
    uint8_t bytes[64] = { 0 };
    dr_view in = image_of(bytes, 4, 4, 3);
    (void)state;
    expect_refused("color_jitter", "{\"brightness\": -1}", &in, "brightness");
    expect_refused("color_jitter", "{\"hue\": -0.1}", &in, "negative");
    expect_refused("color_jitter", "{\"hue\": 0.6}", &in, "hue");
    expect_refused("color_jitter", "{\"contrast\": [2, 1]}", &in, "must have the least number first, got (2, 1)");
    expect_refused("color_jitter", "{\"contrast\": [1, 2, 3]}", &in, "contrast");
    expect_refused("grayscale", "{\"num_output_channels\": 2}", &in, "1 or 3");
    expect_refused("random_posterize", "{\"bits\": 0}", &in, "bits");
    expect_refused("random_posterize", "{}", &in, "must be given");
    expect_refused("random_invert", "{\"p\": 1.5}", &in, "p must be 0 to 1, got 1.5");
    in = image_of(bytes, 4, 4, 4);
    expect_refused("color_jitter", "{\"hue\": 0.1}", &in, "got 4");
    expect_refused("random_equalize", "{}", &in, "got 4");
    in.desc.dtype = DR_U16;
    expect_refused("random_invert", "{}", &in, "uint16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),    cmocka_unit_test(histograms), cmocka_unit_test(equalize_counts),
        cmocka_unit_test(blends),    cmocka_unit_test(hue),        cmocka_unit_test(greys),
        cmocka_unit_test(sharpness), cmocka_unit_test(blur),       cmocka_unit_test(wrong_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
