/* test_gif.c: small GIFs, byte by byte.  tests/python/test_codec_gif.py compares with Pillow. */
#include "unit/codec/image/small_file.h"

/* Four colours, 10 20 30 and so on by 30; 3 x 2 pixels of colours 0 1 2 3 0 1. */
static const uint8_t plain[] = { 71,  73,  70,  56, 57, 97, 3, 0, 2, 0, 129, 0, 0, 10, 20, 30, 40,  50, 60, 70, 80, 90,
                                 100, 110, 120, 44, 0,  0,  0, 0, 3, 0, 2,   0, 0, 2,  4,  68, 168, 17, 41, 0,  59 };

/* 2 x 2 pixels of colours 1 2 3 1 at 1, 1 of a screen of 4 x 3; colour 2 is transparent. */
static const uint8_t small[] = { 71, 73, 70, 56, 57, 97,  4,   0,   3,  0,   129, 0,   0,   10, 20, 30, 40,
                                 50, 60, 70, 80, 90, 100, 110, 120, 33, 249, 4,   1,   0,   0,  2,  0,  44,
                                 1,  0,  1,  0,  2,  0,   2,   0,   0,  2,   3,   140, 184, 20, 0,  59 };

/* One column; its five rows are stored as 0 1 2 3 1, for rows 0 4 2 1 3. */
static const uint8_t interlaced[] = { 71, 73, 70, 56, 57, 97, 1,  0,   5,   0,   129, 0, 0, 10, 20,
                                      30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 44,  0, 0, 0,  0,
                                      1,  0,  5,  0,  64, 2,  4,  68,  168, 49,  5,   0, 59 };

static void test_kinds(void **unused)
{
    static const uint8_t all[] = { 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 10, 20, 30, 40, 50, 60 };
    static const uint8_t column[] = { 10, 20, 30, 100, 110, 120, 70, 80, 90, 40, 50, 60, 40, 50, 60 };
    uint8_t want[4 * 3][4];
    (void)unused;
    expect_pixels(plain, sizeof(plain), DR__MODE_RGB, all, sizeof(all));
    expect_pixels(interlaced, sizeof(interlaced), DR__MODE_RGB, column, sizeof(column));
    for (int i = 0; i < 12; i++)
        memcpy(want[i], (uint8_t[]){ 70, 80, 90, 0 }, 4);
    memcpy(want[5], (uint8_t[]){ 40, 50, 60, 255 }, 4);
    memcpy(want[9], (uint8_t[]){ 100, 110, 120, 255 }, 4);
    memcpy(want[10], (uint8_t[]){ 40, 50, 60, 255 }, 4);
    expect_pixels(small, sizeof(small), DR__MODE_RGBA, want, sizeof(want));
    expect_pixels(small, sizeof(small), DR__MODE_UNCHANGED, want, sizeof(want));
}

static void test_parts(void **unused)
{
    (void)unused;
    expect_parts(plain, sizeof(plain), DR__MODE_GRAY);
    expect_parts(small, sizeof(small), DR__MODE_RGBA);
    expect_parts(interlaced, sizeof(interlaced), DR__MODE_RGB);
}

static void test_damage(void **unused)
{
    uint8_t file[sizeof(plain)];
    (void)unused;
    expect_bounds(plain, sizeof(plain));
    expect_bounds(interlaced, sizeof(interlaced));
    expect_survival(small, sizeof(small));
    expect_error(plain, sizeof(plain) - 3, DR_ERR_FORMAT, "truncated");
    memcpy(file, plain, sizeof(plain));
    memset(file + 30, 0xff, 4); /* the frame's width and height */
    expect_error(file, sizeof(file), DR_ERR_LIMIT, "65535 x 65535");
    memset(file + 30, 0, 4);
    expect_error(file, sizeof(file), DR_ERR_FORMAT, "0 x 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests_name("codec: GIF", tests, NULL, NULL);
}
