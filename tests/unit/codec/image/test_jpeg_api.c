/* test_jpeg_api.c: the decoder of drapps/jpeg.h: the codec's pixels, crops, indexes, errors that name values. */
#include "unit/cm.h"

#include <limits.h>

#include <drapps/jpeg.h>

#include "base/alloc.h"
#include "codec/image/jpeg_seek.h"
#include "unit/codec/image/decode_helper.h"

static dr_error err;

static struct blob sample(int width, int height, int h, int v, uint64_t seed)
{
    return make_jpeg(&(struct jpeg_spec){
        .width = width, .height = height, .color = JPEG_YCC, .h = { h }, .v = { v }, .seed = seed });
}

static dr_jpeg *open_decoder(void)
{
    dr_jpeg *jpeg = NULL;
    assert_ok(dr_jpeg_open(&jpeg, &err));
    return jpeg;
}

/* What the codec gives for the whole image, by libjpeg. */
static struct picture reference(const struct blob *b)
{
    dr__decode_options options;
    dr__decode_defaults(&options);
    options.libjpeg = true;
    dr_codec_state *state = dr__codec_state_new();
    struct picture p;
    assert_ok(picture_decode(state, b, &options, NULL, &p, &err));
    dr__codec_state_free(&state);
    return p;
}

/* Decodes into guarded memory and compares with the part of `whole`. */
static void expect_part(dr_jpeg *jpeg, const struct blob *b, const dr_rect *crop, dr_jpeg_index *index,
                        const struct picture *whole)
{
    struct picture part = { .rect = crop ? *crop : whole->rect };
    part.row = (size_t)part.rect.w * 3;
    part.stride = part.row + GUARD;
    size_t total = GUARD + part.stride * (size_t)part.rect.h;
    part.memory = malloc(total);
    memset(part.memory, GUARD_BYTE, total);
    part.pixels = part.memory + GUARD;
    assert_ok(dr_jpeg_decode(jpeg, b->data, b->size, crop, index, part.pixels, (ptrdiff_t)part.stride, &err));
    assert_true(picture_guarded(&part));
    assert_true(picture_matches(&part, whole));
    picture_free(&part);
}

static void test_header(void **unused)
{
    (void)unused;
    struct blob b = sample(37, 21, 2, 2, 1);
    dr_jpeg *jpeg = open_decoder();
    dr_jpeg_info info;
    assert_ok(dr_jpeg_header(jpeg, b.data, b.size, &info, &err));
    assert_int_equal(info.width, 37);
    assert_int_equal(info.height, 21);
    assert_string_equal(info.stored, "YCbCr 4:2:0");
    assert_non_null(info.decoder);
    dr_jpeg_use_libjpeg(jpeg, true);
    assert_ok(dr_jpeg_header(jpeg, b.data, b.size, &info, &err));
    assert_non_null(strstr(info.decoder, "libjpeg-turbo"));
    dr_jpeg_close(&jpeg);
    assert_null(jpeg);
    blob_free(&b);
}

static void test_pixels_are_the_codecs(void **unused)
{
    (void)unused;
    static const int sizes[][4] = {
        { 1, 1, 1, 1 }, { 8, 8, 2, 2 }, { 61, 47, 1, 1 }, { 95, 70, 2, 2 }, { 64, 33, 2, 1 }
    };
    uint64_t seed = 5;
    dr_jpeg *jpeg = open_decoder();
    for (size_t i = 0; i < DR_COUNT(sizes); i++) {
        struct blob b = sample(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], i);
        struct picture whole = reference(&b);
        dr_jpeg_index *index = NULL;
        assert_ok(dr_jpeg_index_new(&index, &err));
        for (int k = 0; k < 24; k++) {
            dr_rect crop = random_rect(&seed, sizes[i][0], sizes[i][1]);
            dr_jpeg_use_libjpeg(jpeg, k % 3 == 0);
            expect_part(jpeg, &b, &crop, k % 2 ? index : NULL, &whole);
        }
        dr_jpeg_use_libjpeg(jpeg, false);
        expect_part(jpeg, &b, NULL, index, &whole);
        expect_part(jpeg, &b, NULL, NULL, &whole);
        dr_jpeg_index_free(&index);
        assert_null(index);
        picture_free(&whole);
        blob_free(&b);
    }
    dr_jpeg_close(&jpeg);
}

static void test_gray_and_cmyk_give_rgb(void **unused)
{
    (void)unused;
    dr_jpeg *jpeg = open_decoder();
    static const enum jpeg_color colors[] = { JPEG_GRAY, JPEG_PLAIN_RGB, JPEG_CMYK, JPEG_YCCK };
    for (size_t i = 0; i < DR_COUNT(colors); i++) {
        struct blob b = make_jpeg(&(struct jpeg_spec){ .width = 30, .height = 19, .color = colors[i], .seed = i });
        struct picture whole = reference(&b);
        dr_rect crop = { 3, 4, 20, 11 };
        expect_part(jpeg, &b, &crop, NULL, &whole);
        expect_part(jpeg, &b, NULL, NULL, &whole);
        picture_free(&whole);
        blob_free(&b);
    }
    dr_jpeg_close(&jpeg);
}

static void test_wrong_arguments_are_named(void **unused)
{
    (void)unused;
    struct blob b = sample(40, 30, 2, 2, 3);
    static uint8_t pixels[40 * 30 * 3];
    dr_jpeg *jpeg = open_decoder();
    static const struct {
        dr_rect crop;
        ptrdiff_t stride;
        const char *part;
    } cases[] = {
        { { 10, 0, 31, 5 }, 120, "31 x 5 is not inside the image of 40 x 30" },
        { { 0, 26, 5, 5 }, 120, "is not inside the image of 40 x 30" },
        { { -1, 0, 5, 5 }, 120, "rectangle -1,0" },
        { { INT64_MAX, 0, 5, 5 }, 120, "is not inside" },
        { { 0, 0, 0, 5 }, 120, "0 x 5" },
        { { 0, 0, 5, -2 }, 120, "5 x -2" },
        { { 0, 0, 40, 30 }, 119, "got 119" },
        { { 0, 0, 40, 30 }, -120, "got -120" },
        { { 0, 0, INT64_MAX, 30 }, 120, "stride" },
    };
    for (size_t i = 0; i < DR_COUNT(cases); i++)
        assert_fails(dr_jpeg_decode(jpeg, b.data, b.size, &cases[i].crop, NULL, pixels, cases[i].stride, &err),
                     DR_ERR_ARG, cases[i].part);
    blob_free(&b);
    dr_jpeg_close(&jpeg);
}

static void test_what_is_no_jpeg(void **unused)
{
    (void)unused;
    static uint8_t pixels[40 * 30 * 3];
    const dr_rect crop = { 0, 0, 10, 10 };
    dr_jpeg *jpeg = open_decoder();
    dr_jpeg_info info;
    assert_fails(dr_jpeg_header(jpeg, "", 0, &info, &err), DR_ERR_FORMAT, "0 bytes");
    assert_fails(dr_jpeg_decode(jpeg, NULL, 0, &crop, NULL, pixels, 30, &err), DR_ERR_FORMAT, "0 bytes");
    assert_fails(dr_jpeg_decode(jpeg, "%PDF-1", 6, &crop, NULL, pixels, 30, &err), DR_ERR_UNSUPPORTED, "PDF");
    assert_fails(dr_jpeg_decode(jpeg, "BM....", 6, NULL, NULL, pixels, 30, &err), DR_ERR_FORMAT, "bmp");
    struct blob b = sample(40, 30, 1, 1, 3);
    assert_fails(dr_jpeg_decode(jpeg, b.data, b.size / 2, NULL, NULL, pixels, 120, &err), DR_ERR_FORMAT, "");
    blob_free(&b);
    dr_jpeg_close(&jpeg);
}

static void test_index_of_another_file(void **unused)
{
    (void)unused;
    struct blob a = sample(40, 30, 1, 1, 3), b = sample(40, 32, 1, 1, 4);
    struct blob c = blob_copy(a.data, a.size);
    c.data[c.size / 2] ^= 0x10;
    static uint8_t pixels[40 * 32 * 3];
    dr_jpeg *jpeg = open_decoder();
    dr_jpeg_index *index = NULL;
    assert_ok(dr_jpeg_index_new(&index, &err));
    assert_int_equal(dr_jpeg_index_bytes(index), 0);
    assert_fails(dr_jpeg_decode(jpeg, b.data, b.size, &(dr_rect){ 1, 0, 40, 1 }, index, pixels, 120, &err), DR_ERR_ARG,
                 "not inside"); /* nothing was learnt from it */
    assert_ok(dr_jpeg_decode(jpeg, a.data, a.size, NULL, index, pixels, 120, &err));
    assert_ok(dr_jpeg_decode(jpeg, a.data, a.size, NULL, index, pixels, 120, &err));
    assert_fails(dr_jpeg_decode(jpeg, b.data, b.size, NULL, index, pixels, 120, &err), DR_ERR_ARG,
                 "learnt from a file");
    assert_fails(dr_jpeg_decode(jpeg, c.data, c.size, NULL, index, pixels, 120, &err), DR_ERR_ARG, "another file");
    dr_jpeg_index_free(&index);
    dr_jpeg_close(&jpeg);
    blob_free(&a);
    blob_free(&b);
    blob_free(&c);
}

/* What can seek has points after a whole decode, a few bytes for each row of MCUs. */
static void test_index_is_learnt(void **unused)
{
    (void)unused;
    struct blob b = sample(64, 96, 1, 1, 7);
    static uint8_t pixels[64 * 96 * 3];
    dr__decode_options options;
    dr__decode_defaults(&options);
    dr_codec_state *state = dr__codec_state_new();
    const dr_image_codec *codec;
    dr__image_info facts = { 0 };
    assert_ok(dr__image_probe(b.data, b.size, &codec, &err));
    assert_ok(codec->header(state, b.data, b.size, &options, &facts, &err));
    dr_jpeg *jpeg = open_decoder();
    dr_jpeg_index *index = NULL;
    assert_ok(dr_jpeg_index_new(&index, &err));
    assert_ok(dr_jpeg_decode(jpeg, b.data, b.size, NULL, index, pixels, 192, &err));
    if (facts.seekable)
        assert_in_range(dr_jpeg_index_bytes(index), 12, 12 * 12 * DR__SEEK_PARTS);
    else
        assert_int_equal(dr_jpeg_index_bytes(index), 0);
    dr_jpeg_index_free(&index);
    dr_jpeg_close(&jpeg);
    dr__codec_state_free(&state);
    blob_free(&b);
}

static dr_status use_once(const struct blob *b, uint8_t *pixels)
{
    dr_jpeg *jpeg = NULL;
    dr_jpeg_index *index = NULL;
    dr_status status = dr_jpeg_open(&jpeg, &err);
    if (status == DR_OK)
        status = dr_jpeg_index_new(&index, &err);
    if (status == DR_OK)
        status = dr_jpeg_decode(jpeg, b->data, b->size, NULL, index, pixels, 120, &err);
    dr_jpeg_index_free(&index);
    dr_jpeg_close(&jpeg);
    return status;
}

/* Short memory is an error or, where something was only to be remembered, no harm. */
static void test_failing_allocations(void **unused)
{
    (void)unused;
    struct blob b = sample(40, 30, 2, 2, 3);
    static uint8_t want[40 * 30 * 3], pixels[40 * 30 * 3];
    dr__alloc_fail_at(LONG_MAX, false); /* counts */
    assert_ok(use_once(&b, want));
    long n = dr__alloc_fail_at(0, false);
    assert_true(n > 2);
    int failures = 0;
    for (long i = 1; i <= n; i++) {
        dr__alloc_fail_at(i, false);
        dr_status status = use_once(&b, pixels);
        dr__alloc_fail_at(0, false);
        failures += status == DR_ERR_NOMEM;
        assert_true(status == DR_ERR_NOMEM || (status == DR_OK && !memcmp(pixels, want, sizeof want)));
    }
    assert_true(failures > 0);
    blob_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_pixels_are_the_codecs),
        cmocka_unit_test(test_gray_and_cmyk_give_rgb),
        cmocka_unit_test(test_wrong_arguments_are_named),
        cmocka_unit_test(test_what_is_no_jpeg),
        cmocka_unit_test(test_index_of_another_file),
        cmocka_unit_test(test_index_is_learnt),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
