/* test_pnm.c: Netpbm's files, byte by byte.  tests/python/test_codec_pnm.py compares with Pillow. */
#include "unit/codec/image/small_file.h"

#define FILE_OF(text) (text), (sizeof(text) - 1)

static void test_kinds(void **unused)
{
    static const uint8_t bits[] = { 255, 0, 255, 0, 255, 0 }, grey[] = { 0, 64, 255 }, color[] = { 1, 2, 3, 4, 5, 6 };
    static const uint8_t clipped[] = { 1, 255 };
    static const uint16_t deep[] = { 1, 0xfffe };
    (void)unused;
    expect_pixels(FILE_OF("P1\n3 2 # a comment\n0 1 0 1#\n01"), DR__MODE_GRAY, bits, sizeof(bits));
    expect_pixels(FILE_OF("P4 3 2\n\x40\xa0"), DR__MODE_GRAY, bits, sizeof(bits));
    expect_pixels(FILE_OF("P2 3 1 4 0 1 4"), DR__MODE_GRAY, grey, sizeof(grey));
    expect_pixels(FILE_OF("P5 3 1 4\n\0\1\xff"), DR__MODE_GRAY, grey, sizeof(grey));
    expect_pixels(FILE_OF("P3 2 1 255 1 2 3 4 5 6"), DR__MODE_RGB, color, sizeof(color));
    expect_pixels(FILE_OF("P6 2 1 255\n\1\2\3\4\5\6"), DR__MODE_RGB, color, sizeof(color));
    expect_pixels(FILE_OF("P5 2 1 65535\n\0\1\xff\xfe"), DR__MODE_UNCHANGED, deep, sizeof(deep));
    expect_pixels(FILE_OF("P5 2 1 65535\n\0\1\xff\xfe"), DR__MODE_GRAY, clipped, sizeof(clipped));
}

static void test_parts(void **unused)
{
    (void)unused;
    expect_parts(FILE_OF("P1 4 3 010111001010"), DR__MODE_RGB);
    expect_parts(FILE_OF("P4 9 2\n\x5a\x80\xa5\0"), DR__MODE_GRAY);
    expect_parts(FILE_OF("P2 4 3 99 1 2 3 4 5 6 7 8 9 10 11 12"), DR__MODE_RGBA);
    expect_parts(FILE_OF("P6 2 2 300\n\0\1\0\2\0\3\0\4\0\5\0\6\0\7\1\10\1\11\1\12\0\13\0\14"), DR__MODE_UNCHANGED);
}

static void test_damage(void **unused)
{
    (void)unused;
    expect_error(FILE_OF("P5 3"), DR_ERR_FORMAT, "truncated");
    expect_error(FILE_OF("P5 3 2 255\n12345"), DR_ERR_FORMAT, "truncated");
    expect_error(FILE_OF("P5 3 2 70000\n"), DR_ERR_FORMAT, "70000");
    expect_error(FILE_OF("P5 3 -2 255\n"), DR_ERR_FORMAT, "byte 45");
    expect_error(FILE_OF("P2 1 1 9 10"), DR_ERR_FORMAT, "a value of 10");
    expect_error(FILE_OF("P1 1 1 2"), DR_ERR_FORMAT, "0 or 1");
    expect_error(FILE_OF("P5 9999999999 9999999999 255\n"), DR_ERR_LIMIT, "9999999999");
    expect_bounds(FILE_OF("P3 2 1 255 1 2 3 4 5 6"));
    expect_bounds(FILE_OF("P6 2 1 999\n\1\2\3\4\5\6\1\2\3\4\5\6"));
    expect_survival(FILE_OF("P6 2 1 999\n\1\2\3\4\5\6\1\2\3\4\5\6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests_name("codec: PNM", tests, NULL, NULL);
}
