/* test_tiff.c: small TIFFs, byte by byte.  tests/python/test_codec_tiff.py compares with Pillow. */
#include "unit/codec/image/small_file.h"

/* 3 x 2 pixels of RGB, one row a strip: 1 to 9 and 11 to 19. */
static const uint8_t rgb[] = { 73, 73, 42, 0,  52, 0, 0,  0,  1, 2, 3, 4,  5,  6, 7, 8, 9, 0,  11, 12, 13, 14, 15,
                               16, 17, 18, 19, 0,  8, 0,  8,  0, 8, 0, 0,  0,  8, 0, 0, 0, 18, 0,  0,  0,  9,  0,
                               0,  0,  9,  0,  0,  0, 10, 0,  0, 1, 4, 0,  1,  0, 0, 0, 3, 0,  0,  0,  1,  1,  4,
                               0,  1,  0,  0,  0,  2, 0,  0,  0, 2, 1, 3,  0,  3, 0, 0, 0, 28, 0,  0,  0,  3,  1,
                               3,  0,  1,  0,  0,  0, 1,  0,  0, 0, 6, 1,  3,  0, 1, 0, 0, 0,  2,  0,  0,  0,  17,
                               1,  4,  0,  2,  0,  0, 0,  36, 0, 0, 0, 21, 1,  3, 0, 1, 0, 0,  0,  3,  0,  0,  0,
                               22, 1,  4,  0,  1,  0, 0,  0,  1, 0, 0, 0,  23, 1, 4, 0, 2, 0,  0,  0,  44, 0,  0,
                               0,  28, 1,  3,  0,  1, 0,  0,  0, 1, 0, 0,  0,  0, 0, 0, 0, 0,  0,  0,  0 };

/* 3 x 2 pixels of a bit, 1 is black, to be turned right: 101 and 010; big-endian. */
static const uint8_t turned[] = { 77, 77, 0, 42, 0, 0, 0, 10, 160, 64, 0, 10, 1, 0,  0, 4, 0, 0, 0, 1, 0, 0, 0, 3,
                                  1,  1,  0, 4,  0, 0, 0, 1,  0,   0,  0, 2,  1, 2,  0, 3, 0, 0, 0, 1, 0, 1, 0, 0,
                                  1,  3,  0, 3,  0, 0, 0, 1,  0,   1,  0, 0,  1, 6,  0, 3, 0, 0, 0, 1, 0, 0, 0, 0,
                                  1,  17, 0, 4,  0, 0, 0, 1,  0,   0,  0, 8,  1, 18, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0,
                                  1,  21, 0, 3,  0, 0, 0, 1,  0,   1,  0, 0,  1, 23, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2,
                                  1,  28, 0, 3,  0, 0, 0, 1,  0,   1,  0, 0,  0, 0,  0, 0, 0, 0, 0, 0 };

/* Of 32-bit floats. */
static const uint8_t floats[] = { 73, 73, 42, 0,  16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  10, 0, 0, 1, 4, 0, 1, 0, 0,
                                  0,  2,  0,  0,  0,  1, 1, 4, 0, 1, 0, 0, 0, 1, 0,  0,  0,  2, 1, 3, 0, 1, 0, 0, 0,
                                  32, 0,  0,  0,  3,  1, 3, 0, 1, 0, 0, 0, 1, 0, 0,  0,  6,  1, 3, 0, 1, 0, 0, 0, 1,
                                  0,  0,  0,  17, 1,  4, 0, 1, 0, 0, 0, 8, 0, 0, 0,  21, 1,  3, 0, 1, 0, 0, 0, 1, 0,
                                  0,  0,  23, 1,  4,  0, 1, 0, 0, 0, 8, 0, 0, 0, 28, 1,  3,  0, 1, 0, 0, 0, 1, 0, 0,
                                  0,  83, 1,  3,  0,  1, 0, 0, 0, 3, 0, 0, 0, 0, 0,  0,  0,  0, 0, 0, 0 };

static void test_kinds(void **unused)
{
    static const uint8_t color[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19 };
    static const uint8_t bits[] = { 255, 0, 0, 255, 255, 0 };
    (void)unused;
    expect_pixels(rgb, sizeof(rgb), DR__MODE_RGB, color, sizeof(color));
    expect_pixels(turned, sizeof(turned), DR__MODE_GRAY, bits, sizeof(bits));
    expect_parts(rgb, sizeof(rgb), DR__MODE_RGBA);
    expect_parts(turned, sizeof(turned), DR__MODE_RGB);
}

static void test_damage(void **unused)
{
    uint8_t file[sizeof(rgb)];
    dr__decode_options o = options_of(DR__MODE_RGB);
    dr_error err = { 0 };
    (void)unused;
    expect_bounds(rgb, sizeof(rgb));
    expect_survival(turned, sizeof(turned));
    expect_error(floats, sizeof(floats), DR_ERR_UNSUPPORTED, "format 3");
    expect_error(rgb, 100, DR_ERR_FORMAT, "damaged TIFF");
    o.max_bytes = 40;
    assert_int_equal(decode_with(rgb, sizeof(rgb), &o, &err), DR_ERR_LIMIT);
    memcpy(file, rgb, sizeof(rgb));
    memset(file + 62, 0xff, 4); /* the width */
    expect_error(file, sizeof(file), DR_ERR_LIMIT, "4294967295");
    memcpy(file, rgb, sizeof(rgb));
    memset(file + 36, 0xff, 4); /* where the first strip is */
    expect_error(file, sizeof(file), DR_ERR_FORMAT, "strip 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests_name("codec: TIFF", tests, NULL, NULL);
}
