/* test_image.c: probing, header facts, limits, orientation, and what must not pass from one image to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "codec/codec_config.h"
#include "codec/image/exif.h"
#include "unit/codec/image/decode_helper.h"

static dr__decode_options defaults(void)
{
    dr__decode_options o;
    dr__decode_defaults(&o);
    return o;
}

static void test_probe_says_what_it_sees(void **unused)
{
    static const struct {
        const char *bytes, *word;
        size_t n;
        dr_status status;
    } cases[] = {
        { "", "0 bytes", 0, DR_ERR_FORMAT },
        { "\xff\x0a", "JPEG XL", 2, DR_ERR_UNSUPPORTED },
        { "P7\nWIDTH", "50 37 0a", 8, DR_ERR_FORMAT },
        { "<!DOCTYPE html>", "HTML", 15, DR_ERR_UNSUPPORTED },
        { "\x01\x02\xfe", "01 02 fe", 3, DR_ERR_FORMAT },
#ifndef DR_HAVE_PNG
        { "\x89PNG\r\n\x1a\n", "libpng-dev", 8, DR_ERR_UNSUPPORTED },
#endif
#ifndef DR_HAVE_WEBP
        { "RIFF....WEBP", "libwebp-dev", 12, DR_ERR_UNSUPPORTED },
#endif
#ifndef DR_HAVE_GIF
        { "GIF89a", "libgif-dev", 6, DR_ERR_UNSUPPORTED },
#endif
#ifndef DR_HAVE_TIFF
        { "MM\0*....", "libtiff-dev", 8, DR_ERR_UNSUPPORTED },
#endif
    };
    (void)unused;
    for (size_t i = 0; i < DR_COUNT(cases); i++) {
        const dr_image_codec *codec;
        dr_error err = { 0 };
        assert_int_equal(dr__image_probe((const uint8_t *)cases[i].bytes, cases[i].n, &codec, &err), cases[i].status);
        assert_null(codec);
        assert_non_null(strstr(err.text, cases[i].word));
    }
}

static dr_status header_of(const struct blob *b, const dr__decode_options *o, dr__image_info *info, dr_error *err)
{
    const dr_image_codec *codec;
    DR_TRY(dr__image_probe(b->data, b->size, &codec, err));
    dr_codec_state *state = dr__codec_state_new();
    dr_status status = codec->header(state, b->data, b->size, o, info, err);
    dr__codec_state_free(&state);
    return status;
}

static void test_jpeg_facts(void **unused)
{
    (void)unused;
    struct blob b = make_jpeg(&(struct jpeg_spec){
        .width = 33, .height = 20, .color = JPEG_YCC, .h = { 2 }, .v = { 2 }, .progressive = true, .orientation = 6 });
    dr__decode_options o = defaults();
    dr__image_info info;
    assert_int_equal(header_of(&b, &o, &info, NULL), DR_OK);
    assert_int_equal(info.width, 33);
    assert_int_equal(info.height, 20);
    assert_int_equal(info.orientation, 1);
    assert_int_equal(info.channels, 3);
    assert_string_equal(info.stored, "YCbCr 4:2:0");
    assert_true(info.progressive);
    o.exif_orient = true;
    o.scale_denom = 4;
    o.mode = DR__MODE_RGBA;
    assert_int_equal(header_of(&b, &o, &info, NULL), DR_OK);
    assert_int_equal(info.width, 5);
    assert_int_equal(info.height, 9);
    assert_int_equal(info.orientation, 6);
    assert_int_equal(info.channels, 4);
    blob_free(&b);
}

static void expect_limit(const struct blob *b, const dr__decode_options *o, const char *word)
{
    dr__image_info info;
    dr_error err = { 0 };
    assert_int_equal(header_of(b, o, &info, &err), DR_ERR_LIMIT);
    assert_non_null(strstr(err.text, word));
}

static void check_limits(struct blob *b)
{
    dr__decode_options o = defaults();
    o.max_side = 63;
    expect_limit(b, &o, "max_side is 63");
    o = defaults();
    o.max_pixels = 64 * 48 - 1;
    expect_limit(b, &o, "max_pixels is 3071");
    o = defaults();
    o.max_bytes = 9000;
    expect_limit(b, &o, "max_bytes is 9000");
    blob_free(b);
}

static void test_limits(void **unused)
{
    (void)unused;
    struct blob jpeg = make_jpeg(&(struct jpeg_spec){ .width = 64, .height = 48, .color = JPEG_YCC });
    check_limits(&jpeg);
#ifdef DR_HAVE_PNG
    struct blob png = make_png(&(struct png_spec){ .width = 64, .height = 48, .color_type = 2, .depth = 8 });
    check_limits(&png);
#endif
#ifdef DR_HAVE_WEBP
    struct blob webp = make_webp(&(struct webp_spec){ .width = 64, .height = 48 });
    check_limits(&webp);
#endif
}

/* The least max_bytes that a header passes with. */
static size_t least_max_bytes(const struct blob *b, dr__decode_options o)
{
    dr__image_info info;
    size_t refused = 0, passed = 1 << 24;
    while (passed - refused > 1) {
        o.max_bytes = (refused + passed) / 2;
        *(header_of(b, &o, &info, NULL) == DR_OK ? &passed : &refused) = o.max_bytes;
    }
    return passed;
}

static void test_limits_do_not_depend_on_the_decoder(void **unused)
{
    (void)unused;
    static const struct jpeg_spec specs[] = {
        { .width = 1, .height = 1, .color = JPEG_GRAY },
        { .width = 333, .height = 41, .color = JPEG_GRAY },
        { .width = 5, .height = 1, .color = JPEG_YCC, .h = { 2 }, .v = { 2 } },
        { .width = 333, .height = 41, .color = JPEG_YCC, .h = { 2 }, .v = { 2 } },
        { .width = 160, .height = 2, .color = JPEG_YCC, .h = { 2 } },
        { .width = 47, .height = 300, .color = JPEG_YCC, .v = { 2 } },
        { .width = 128, .height = 8, .color = JPEG_YCC },
    };
    for (size_t i = 0; i < DR_COUNT(specs); i++) {
        struct blob b = make_jpeg(&specs[i]);
        dr__decode_options o = defaults();
        dr__image_info info;
        o.mode = i % 2 ? DR__MODE_RGB : DR__MODE_GRAY;
        assert_int_equal(header_of(&b, &o, &info, NULL), DR_OK);
        assert_string_equal(info.decoder, "drapps");
        const size_t own = least_max_bytes(&b, o);
        o.libjpeg = true;
        assert_int_equal(own, least_max_bytes(&b, o));
        blob_free(&b);
    }
}

/* Progressive files keep all coefficients, six bytes a pixel at 4:4:4: they meet max_bytes where baseline does not. */
static void test_progressive_counts_its_coefficients(void **unused)
{
    (void)unused;
    dr__decode_options o = defaults();
    o.max_bytes = 256 * 256 * 3 + 120000;
    dr__image_info info;
    struct jpeg_spec spec = { .width = 256, .height = 256, .color = JPEG_YCC };
    struct blob baseline = make_jpeg(&spec);
    spec.progressive = true;
    struct blob progressive = make_jpeg(&spec);
    assert_int_equal(header_of(&baseline, &o, &info, NULL), DR_OK);
    expect_limit(&progressive, &o, "max_bytes");
    blob_free(&baseline);
    blob_free(&progressive);
}

/* Offset of the first segment with that marker in a JPEG; the file has one. */
static size_t find_segment(const struct blob *b, uint8_t marker)
{
    size_t at = 2;
    while (b->data[at + 1] != marker)
        at += 2 + ((size_t)b->data[at + 2] << 8 | b->data[at + 3]);
    return at;
}

static struct blob without_segments(const struct blob *b, uint8_t marker)
{
    struct blob out = blob_copy(b->data, 2);
    out.data = realloc(out.data, b->size);
    for (size_t at = 2; at < b->size;) {
        size_t n = b->data[at + 1] == 0xda ? b->size - at : 2 + ((size_t)b->data[at + 2] << 8 | b->data[at + 3]);
        if (b->data[at + 1] != marker) {
            memcpy(out.data + out.size, b->data + at, n);
            out.size += n;
        }
        at += n;
    }
    return out;
}

/* A file without tables must not be decoded with those of the file before it. */
static void test_tables_do_not_pass_on(void **unused)
{
    (void)unused;
    struct jpeg_spec spec = {
        .width = 40, .height = 30, .color = JPEG_YCC, .seed = 1
    }; /* odd seed: own Huffman codes */
    struct blob first = make_jpeg(&spec);
    struct blob no_quant = without_segments(&first, 0xdb), no_huff = without_segments(&first, 0xc4);
    dr__decode_options o = defaults();
    struct picture p, fresh_p;
    dr_error err = { 0 };
    dr_codec_state *warm = dr__codec_state_new(), *fresh = dr__codec_state_new();
    assert_int_equal(picture_decode(warm, &first, &o, NULL, &p, NULL), DR_OK);
    picture_free(&p);
    assert_int_equal(picture_decode(warm, &no_quant, &o, NULL, &p, &err), DR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "was not defined"));
    /* Without Huffman tables libjpeg-turbo takes the standard ones: other pixels or an error, but always the same. */
    dr_status want = picture_decode(fresh, &no_huff, &o, NULL, &fresh_p, NULL);
    dr_status got = picture_decode(warm, &no_huff, &o, NULL, &p, NULL);
    assert_int_equal(got, want);
    if (got == DR_OK) {
        assert_true(picture_matches(&p, &fresh_p));
        picture_free(&p);
        picture_free(&fresh_p);
    }
    dr__codec_state_free(&warm);
    dr__codec_state_free(&fresh);
    blob_free(&first);
    blob_free(&no_quant);
    blob_free(&no_huff);
}

static void test_deep_jpeg_is_named(void **unused)
{
    (void)unused;
    struct blob b = make_jpeg(&(struct jpeg_spec){ .width = 16, .height = 16, .color = JPEG_YCC });
    b.data[find_segment(&b, 0xc0) + 1] = 0xc1; /* extended sequential allows 12 bits */
    b.data[find_segment(&b, 0xc1) + 4] = 12;
    dr__decode_options o = defaults();
    dr__image_info info;
    dr_error err = { 0 };
    assert_int_equal(header_of(&b, &o, &info, &err), DR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "12"));
    blob_free(&b);
}

/* A header may claim any size; nothing of that size is allocated. */
static void test_huge_claims(void **unused)
{
    (void)unused;
    struct blob b = make_jpeg(&(struct jpeg_spec){ .width = 16, .height = 16, .color = JPEG_YCC });
    memcpy(b.data + find_segment(&b, 0xc0) + 5, "\xff\0\xff", 4);
    dr__decode_options o = defaults();
    expect_limit(&b, &o, "65280 x 65280");
    blob_free(&b);
#ifdef DR_HAVE_PNG
    b = make_png(&(struct png_spec){ .width = 16, .height = 16, .color_type = 0, .depth = 8 });
    memset(b.data + 16, 0x7f, 8);
    expect_limit(&b, &o, "2139062143");
    blob_free(&b);
#endif
}

static void test_orientation_of_exif_and_xmp(void **unused)
{
    static const char xmp[] = "<x tiff:Orientation=\"6\"/>", element[] = "<tiff:Orientation>8</tiff:Orientation>";
    uint8_t block[26];
    (void)unused;
    for (int big = 0; big < 2; big++)
        for (int i = 0; i < 12; i++) {
            size_t n = make_exif(block, i, big);
            assert_int_equal(dr__exif_orientation(block, n), i >= 1 && i <= 8 ? i : 0);
            for (size_t cut = 0; cut < 22; cut++)
                assert_int_equal(dr__exif_orientation(block, cut), 0);
        }
    assert_int_equal(dr__xmp_orientation((const uint8_t *)xmp, sizeof(xmp) - 1), 6);
    assert_int_equal(dr__xmp_orientation((const uint8_t *)element, sizeof(element) - 1), 8);
    for (size_t cut = 0; cut <= strlen("<x tiff:Orientation=\""); cut++)
        assert_int_equal(dr__xmp_orientation((const uint8_t *)xmp, cut), 0);
}

/* The turned image, pixel by pixel from the one that is not. */
static void test_turning(void **unused)
{
    (void)unused;
    dr_codec_state *state = dr__codec_state_new();
    for (int k = 1; k <= 8; k++) {
        struct blob b =
            make_jpeg(&(struct jpeg_spec){ .width = 23, .height = 11, .color = JPEG_YCC, .orientation = k });
        dr__decode_options o = defaults();
        struct picture plain, turned;
        assert_int_equal(picture_decode(state, &b, &o, NULL, &plain, NULL), DR_OK);
        o.exif_orient = true;
        assert_int_equal(picture_decode(state, &b, &o, NULL, &turned, NULL), DR_OK);
        assert_int_equal(turned.info.width, k >= 5 ? 11 : 23);
        for (int y = 0; y < turned.info.height; y++)
            for (int x = 0; x < turned.info.width; x++) {
                const int from[9][2] = { { 0 },    { x, y },      { 22 - x, y },      { 22 - x, 10 - y }, { x, 10 - y },
                                         { y, x }, { y, 10 - x }, { 22 - y, 10 - x }, { 22 - y, x } };
                assert_memory_equal(turned.pixels + (size_t)y * turned.stride + 3 * (size_t)x,
                                    plain.pixels + (size_t)from[k][1] * plain.stride + 3 * (size_t)from[k][0], 3);
            }
        picture_free(&plain);
        picture_free(&turned);
        blob_free(&b);
    }
    dr__codec_state_free(&state);
}

static void test_wrong_rectangles(void **unused)
{
    static const dr_rect bad[] = { { -1, 0, 4, 4 }, { 0, 0, 0, 4 },         { 0, 0, 21, 4 },       { 10, 0, 11, 4 },
                                   { 0, 15, 4, 2 }, { INT64_MAX, 0, 4, 4 }, { 0, 0, INT64_MAX, 1 } };
    (void)unused;
    struct blob b = make_jpeg(&(struct jpeg_spec){ .width = 20, .height = 16, .color = JPEG_GRAY });
    const dr_image_codec *codec;
    uint8_t pixels[64] = { 0 };
    dr_codec_state *state = dr__codec_state_new();
    assert_int_equal(dr__image_probe(b.data, b.size, &codec, NULL), DR_OK);
    for (size_t i = 0; i < DR_COUNT(bad); i++) {
        dr__decode_options o = defaults();
        dr_view out = { .data = pixels, .stride = 12, .desc = dr__desc_image(DR_U8, 16, 20, 3), .window = bad[i] };
        assert_int_equal(codec->decode(state, b.data, b.size, &o, &bad[i], &out, NULL), DR_ERR_ARG);
    }
    dr__codec_state_free(&state);
    blob_free(&b);
}

static bool same_pixels(const struct picture *a, const struct picture *b)
{
    return a->rect.h == b->rect.h && a->stride == b->stride &&
           memcmp(a->pixels, b->pixels, a->stride * (size_t)a->rect.h) == 0;
}

/* The coefficients of large images of several scans have memory of their own; the same pixels as in one scan, after a
 * failure too. */
static void test_large_images_of_several_scans(void **unused)
{
    struct jpeg_spec spec = { .width = 2100, .height = 1101, .color = JPEG_YCC, .h = { 2 }, .v = { 2 }, .seed = 5 };
    dr__decode_options o = defaults();
    dr_error err = { 0 };
    dr_codec_state *state = dr__codec_state_new();
    struct picture want, got;
    (void)unused;
    struct blob one = make_jpeg(&spec);
    assert_int_equal(picture_decode(state, &one, &o, NULL, &want, &err), DR_OK);
    for (int way = 0; way < 2; way++) {
        spec.progressive = way == 0;
        spec.interleaved_off = way == 1;
        struct blob many = make_jpeg(&spec);
        assert_int_equal(picture_decode(state, &many, &o, NULL, &got, &err), DR_OK);
        assert_true(same_pixels(&want, &got));
        picture_free(&got);
        struct blob cut = blob_copy(many.data, many.size / 2);
        assert_int_equal(picture_decode(state, &cut, &o, NULL, &got, &err), DR_ERR_FORMAT);
        dr__alloc_fail_at(1, true);
        assert_int_equal(picture_decode(state, &many, &o, NULL, &got, &err), DR_ERR_NOMEM);
        dr__alloc_fail_at(0, false);
        assert_int_equal(picture_decode(state, &many, &o, NULL, &got, &err), DR_OK);
        assert_true(same_pixels(&want, &got));
        picture_free(&got);
        assert_int_equal(picture_decode(state, &one, &o, NULL, &got, &err), DR_OK);
        assert_true(same_pixels(&want, &got));
        picture_free(&got);
        blob_free(&cut);
        blob_free(&many);
    }
    picture_free(&want);
    blob_free(&one);
    dr__codec_state_free(&state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe_says_what_it_sees),
        cmocka_unit_test(test_jpeg_facts),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_limits_do_not_depend_on_the_decoder),
        cmocka_unit_test(test_progressive_counts_its_coefficients),
        cmocka_unit_test(test_tables_do_not_pass_on),
        cmocka_unit_test(test_deep_jpeg_is_named),
        cmocka_unit_test(test_huge_claims),
        cmocka_unit_test(test_orientation_of_exif_and_xmp),
        cmocka_unit_test(test_turning),
        cmocka_unit_test(test_wrong_rectangles),
        cmocka_unit_test(test_large_images_of_several_scans),
    };
    return cmocka_run_group_tests_name("codec: images", tests, NULL, NULL);
}
