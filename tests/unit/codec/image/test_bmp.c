/* test_bmp.c: small bitmaps, byte by byte.  tests/python/test_codec_bmp.py compares with Pillow. */
#include "unit/codec/image/small_file.h"

enum { FILE_HEADER = 14, INFO_HEADER = 40, MOST = 256 };

struct file {
    uint8_t bytes[MOST];
    size_t size;
};

static void put(struct file *f, size_t at, uint32_t v, int n)
{
    for (int i = 0; i < n; i++)
        f->bytes[at + (size_t)i] = (uint8_t)(v >> 8 * i);
}

/* A header of 40 bytes, then the masks or the palette, then the pixels. */
static struct file make(int width, int height, int bits, int compression, int colors, const void *table, size_t n_table,
                        const void *pixels, size_t n_pixels)
{
    struct file f = { .bytes = "BM" };
    size_t at = FILE_HEADER + INFO_HEADER + n_table;
    put(&f, 10, (uint32_t)at, 4);
    put(&f, 14, INFO_HEADER, 4);
    put(&f, 18, (uint32_t)width, 4);
    put(&f, 22, (uint32_t)height, 4);
    put(&f, 28, (uint32_t)bits, 2);
    put(&f, 30, (uint32_t)compression, 4);
    put(&f, 46, (uint32_t)colors, 4);
    if (n_table)
        memcpy(f.bytes + FILE_HEADER + INFO_HEADER, table, n_table);
    memcpy(f.bytes + at, pixels, n_pixels);
    f.size = at + n_pixels;
    return f;
}

static const uint8_t palette[] = { 3, 2, 1, 0, 6, 5, 4, 0, 9, 8, 7, 0 };
static const uint8_t two_by_two[] = { 1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0 };

static struct file colors24(int height)
{
    return make(2, height, 24, 0, 0, NULL, 0, two_by_two, sizeof(two_by_two));
}

/* A run, a leap over a pixel, literal pixels, and the ends of rows. */
static struct file runs(void)
{
    static const uint8_t pixels[] = { 2, 1, 0, 2, 1, 0, 0, 0, 0, 3, 2, 1, 0, 0, 0, 0, 0, 1 };
    return make(3, 2, 8, 1, 3, palette, sizeof(palette), pixels, sizeof(pixels));
}

static void test_kinds(void **unused)
{
    static const uint8_t up[] = { 9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4 };
    static const uint8_t down[] = { 3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10 };
    static const uint8_t run[] = { 7, 8, 9, 4, 5, 6, 1, 2, 3, 4, 5, 6, 4, 5, 6, 1, 2, 3 };
    static const uint8_t index[] = { 0x12, 0, 0, 0 }, indexed[] = { 4, 5, 6, 7, 8, 9 };
    static const uint8_t masks[] = { 0, 0xf8, 0, 0, 0xe0, 7, 0, 0, 0x1f, 0, 0, 0 }, word[] = { 0x1f, 0xf8, 0, 0 };
    static const uint8_t magenta[] = { 255, 0, 255 };
    (void)unused;
    struct file f = colors24(2);
    expect_pixels(f.bytes, f.size, DR__MODE_RGB, up, sizeof(up));
    expect_parts(f.bytes, f.size, DR__MODE_RGBA);
    f = colors24(-2);
    expect_pixels(f.bytes, f.size, DR__MODE_RGB, down, sizeof(down));
    f = runs();
    expect_pixels(f.bytes, f.size, DR__MODE_RGB, run, sizeof(run));
    expect_parts(f.bytes, f.size, DR__MODE_GRAY);
    f = make(2, 1, 4, 0, 3, palette, sizeof(palette), index, sizeof(index));
    expect_pixels(f.bytes, f.size, DR__MODE_UNCHANGED, indexed, sizeof(indexed));
    f = make(1, 1, 16, 3, 0, masks, sizeof(masks), word, sizeof(word));
    expect_pixels(f.bytes, f.size, DR__MODE_RGB, magenta, sizeof(magenta));
}

static void test_damage(void **unused)
{
    (void)unused;
    struct file f = colors24(2);
    expect_bounds(f.bytes, f.size);
    expect_survival(f.bytes, f.size);
    expect_error(f.bytes, f.size - 3, DR_ERR_FORMAT, "truncated");
    put(&f, 10, 0xffffffff, 4);
    expect_error(f.bytes, f.size, DR_ERR_FORMAT, "truncated");
    f = colors24(2);
    put(&f, 18, 0x7fffffff, 4);
    expect_error(f.bytes, f.size, DR_ERR_LIMIT, "2147483647");
    f = runs();
    expect_bounds(f.bytes, f.size);
    expect_error(f.bytes, f.size - 8, DR_ERR_FORMAT, "run lengths end after 3 of 6");
    put(&f, 28, 5, 2);
    expect_error(f.bytes, f.size, DR_ERR_UNSUPPORTED, "5 bits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests_name("codec: BMP", tests, NULL, NULL);
}
