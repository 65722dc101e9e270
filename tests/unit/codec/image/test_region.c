/* test_region.c: decoding a rectangle, at once or as bands, gives exactly what decoding everything and cropping gives.
 *
 * Random images of every kind, random rectangles.  DRAPPS_TEST_SEED repeats a run, DRAPPS_TEST_ROUNDS lengthens it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "codec/codec_config.h"
#include "unit/codec/image/decode_helper.h"

enum { RECTS = 12 };

static uint64_t first_seed(void)
{
    const char *text = getenv("DRAPPS_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 20240607;
}

static int rounds(int normal)
{
    const char *text = getenv("DRAPPS_TEST_ROUNDS");
    return text ? atoi(text) : normal;
}

/* Decodes b whole and in parts; fails with a line that says how to repeat it. */
static void check_parts(dr_codec_state *state, const struct blob *b, const dr__decode_options *options, uint64_t seed,
                        const char *what)
{
    struct picture whole, part;
    dr_error err = { 0 };
    if (picture_decode(state, b, options, NULL, &whole, &err) != DR_OK)
        fail_msg("%s, seed %llu: %s", what, (unsigned long long)seed, err.text);
    assert_true(picture_guarded(&whole));
    uint64_t s = seed;
    for (int i = 0; i < RECTS; i++) {
        dr_rect r = random_rect(&s, whole.info.width, whole.info.height);
        if (picture_decode(state, b, options, &r, &part, &err) != DR_OK)
            fail_msg("%s, seed %llu: %s", what, (unsigned long long)seed, err.text);
        if (!picture_guarded(&part) || !picture_matches(&part, &whole))
            fail_msg("%s %lld x %lld (%s), seed %llu: rectangle %lld,%lld %lld x %lld differs", what,
                     (long long)whole.info.width, (long long)whole.info.height, whole.info.stored,
                     (unsigned long long)seed, (long long)r.x, (long long)r.y, (long long)r.w, (long long)r.h);
        if (picture_stream(state, b, options, &part, &err) != DR_OK)
            fail_msg("%s, seed %llu, bands: %s", what, (unsigned long long)seed, err.text);
        if (!picture_matches(&part, &whole))
            fail_msg("%s %lld x %lld (%s), seed %llu: bands of rectangle %lld,%lld %lld x %lld differ", what,
                     (long long)whole.info.width, (long long)whole.info.height, whole.info.stored,
                     (unsigned long long)seed, (long long)r.x, (long long)r.y, (long long)r.w, (long long)r.h);
        picture_free(&part);
    }
    picture_free(&whole);
}

static void random_options(dr__decode_options *options, uint64_t *s)
{
    dr__decode_defaults(options);
    options->mode = random_in(s, 0, 1) ? DR__MODE_RGB : (dr__color_mode)random_in(s, 0, 3);
    options->exif_orient = random_in(s, 0, 2) == 0;
}

static void random_sampling(struct jpeg_spec *spec, uint64_t *s)
{
    static const int luma[][2] = { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 }, { 4, 1 },
                                   { 4, 2 }, { 2, 4 }, { 1, 4 }, { 4, 4 }, { 3, 1 } };
    int k = random_in(s, 0, 9);
    spec->h[0] = luma[k][0];
    spec->v[0] = luma[k][1];
    if (spec->color == JPEG_CMYK || spec->color == JPEG_YCCK) {
        if (spec->h[0] * spec->v[0] > 2) /* ten blocks at most in an MCU */
            spec->h[0] = spec->v[0] = 2;
        if (random_in(s, 0, 1)) {
            spec->h[3] = spec->h[0];
            spec->v[3] = spec->v[0];
        }
    }
    if (spec->h[0] * spec->v[0] > 8) {
        spec->h[0] = 4;
        spec->v[0] = 2;
    }
    if (spec->color == JPEG_YCC && random_in(s, 0, 7) == 0 && spec->h[0] % 2 == 0 && spec->h[0] * spec->v[0] <= 4)
        spec->h[1] = spec->h[0] / 2 * (1 + random_in(s, 0, 1)); /* one chroma finer than the other */
}

static struct jpeg_spec random_jpeg(uint64_t *s)
{
    struct jpeg_spec spec = { .width = random_in(s, 1, 150), .height = random_in(s, 1, 150), .seed = next_random(s) };
    static const enum jpeg_color colors[] = { JPEG_YCC,  JPEG_YCC,       JPEG_YCC,  JPEG_YCC,
                                              JPEG_GRAY, JPEG_PLAIN_RGB, JPEG_CMYK, JPEG_YCCK };
    spec.color = colors[random_in(s, 0, 7)];
    random_sampling(&spec, s);
    spec.quality = random_in(s, 20, 98);
    spec.restart = random_in(s, 0, 2) ? 0 : random_in(s, 1, 40);
    spec.progressive = random_in(s, 0, 3) == 0;
    spec.arithmetic = random_in(s, 0, 7) == 0;
    spec.interleaved_off = !spec.progressive && random_in(s, 0, 7) == 0;
    spec.dc_only = !spec.interleaved_off && random_in(s, 0, 31) == 0;
    spec.orientation = random_in(s, 0, 8);
    spec.big_endian = random_in(s, 0, 1);
    return spec;
}

static void jpeg_parts(dr_codec_state *state, uint64_t seed, int scale)
{
    uint64_t s = seed;
    struct jpeg_spec spec = random_jpeg(&s);
    dr__decode_options options;
    char what[160];
    random_options(&options, &s);
    options.scale_denom = scale;
    snprintf(what, sizeof(what), "jpeg color %d %dx%d,%dx%d%s%s%s%s restart %d scale %d mode %d", spec.color, spec.h[0],
             spec.v[0], spec.h[1], spec.v[1], spec.progressive ? " progressive" : "",
             spec.arithmetic ? " arithmetic" : "", spec.interleaved_off ? " scans" : "", spec.dc_only ? " dc" : "",
             spec.restart, scale, options.mode);
    struct blob b = make_jpeg(&spec);
    check_parts(state, &b, &options, seed, what);
    blob_free(&b);
}

static void test_jpeg_parts(void **unused)
{
    (void)unused;
    dr_codec_state *state = dr__codec_state_new();
    uint64_t seed = first_seed();
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < rounds(800); i++)
        jpeg_parts(state, seed + (uint64_t)i, 1);
    dr__codec_state_free(&state);
}

static void test_scaled_jpeg_parts(void **unused)
{
    (void)unused;
    dr_codec_state *state = dr__codec_state_new();
    uint64_t seed = first_seed() + 1000000;
    for (int i = 0; i < rounds(300); i++)
        jpeg_parts(state, seed + (uint64_t)i, 2 << (i % 3));
    dr__codec_state_free(&state);
}

#ifdef DR_HAVE_PNG
static void test_png_parts(void **unused)
{
    static const int kinds[][2] = { { 0, 1 }, { 0, 2 }, { 0, 4 }, { 0, 8 }, { 0, 16 }, { 2, 8 }, { 2, 16 }, { 3, 1 },
                                    { 3, 2 }, { 3, 4 }, { 3, 8 }, { 4, 8 }, { 4, 16 }, { 6, 8 }, { 6, 16 } };
    (void)unused;
    dr_codec_state *state = dr__codec_state_new();
    for (int i = 0; i < rounds(300); i++) {
        uint64_t seed = first_seed() + (uint64_t)i, s = seed;
        struct png_spec spec = { .width = random_in(&s, 1, 90), .height = random_in(&s, 1, 90), .seed = seed };
        spec.color_type = kinds[i % 15][0];
        spec.depth = kinds[i % 15][1];
        spec.interlaced = random_in(&s, 0, 1);
        spec.transparent = spec.color_type < 4 && random_in(&s, 0, 1);
        spec.orientation = random_in(&s, 0, 8);
        dr__decode_options options;
        random_options(&options, &s);
        struct blob b = make_png(&spec);
        check_parts(state, &b, &options, seed, "png");
        blob_free(&b);
    }
    dr__codec_state_free(&state);
}
#endif

#ifdef DR_HAVE_WEBP
static void test_webp_parts(void **unused)
{
    (void)unused;
    dr_codec_state *state = dr__codec_state_new();
    for (int i = 0; i < rounds(300); i++) {
        uint64_t seed = first_seed() + (uint64_t)i, s = seed;
        struct webp_spec spec = { .width = random_in(&s, 1, 90), .height = random_in(&s, 1, 90), .seed = seed };
        spec.lossless = random_in(&s, 0, 2) == 0;
        spec.alpha = random_in(&s, 0, 2) == 0;
        spec.quality = random_in(&s, 1, 100);
        dr__decode_options options;
        random_options(&options, &s);
        struct blob b = random_in(&s, 0, 3) ? make_webp(&spec)
                                            : make_animation(&spec, 2 * random_in(&s, 0, 9), 2 * random_in(&s, 0, 9),
                                                             spec.width + 20, spec.height + 20);
        check_parts(state, &b, &options, seed, "webp");
        blob_free(&b);
    }
    dr__codec_state_free(&state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jpeg_parts),
        cmocka_unit_test(test_scaled_jpeg_parts),
#ifdef DR_HAVE_PNG
        cmocka_unit_test(test_png_parts),
#endif
#ifdef DR_HAVE_WEBP
        cmocka_unit_test(test_webp_parts),
#endif
    };
    return cmocka_run_group_tests_name("codec: rectangles", tests, NULL, NULL);
}
