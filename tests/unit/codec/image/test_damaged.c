/* test_damaged.c: whatever the bytes are, decoding gives pixels or an error with a reason, and never crashes.
 *
 * The decoder's state is used again after each failure: the next good image must come out as always.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "codec/codec_config.h"
#include "unit/codec/image/decode_helper.h"

enum { N_GOOD = 7 };

static struct blob good[N_GOOD];
static int n_good;

static int set_up(void **unused)
{
    (void)unused;
    struct jpeg_spec base = {
        .width = 57, .height = 43, .color = JPEG_YCC, .h = { 2 }, .v = { 2 }, .restart = 3, .seed = 5
    };
    struct jpeg_spec progressive = base, cmyk = base;
    progressive.progressive = true;
    progressive.orientation = 6;
    cmyk.color = JPEG_YCCK;
    good[n_good++] = make_jpeg(&base);
    good[n_good++] = make_jpeg(&progressive);
    good[n_good++] = make_jpeg(&cmyk);
#ifdef DR_HAVE_PNG
    good[n_good++] = make_png(&(struct png_spec){
        .width = 31, .height = 29, .color_type = 3, .depth = 4, .transparent = true, .orientation = 3, .seed = 5 });
    good[n_good++] = make_png(
        &(struct png_spec){ .width = 31, .height = 29, .color_type = 6, .depth = 16, .interlaced = true, .seed = 5 });
#endif
#ifdef DR_HAVE_WEBP
    good[n_good++] = make_webp(&(struct webp_spec){ .width = 40, .height = 37, .alpha = true, .seed = 5 });
    good[n_good++] = make_webp(&(struct webp_spec){ .width = 40, .height = 37, .lossless = true, .seed = 5 });
#endif
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    while (n_good > 0)
        blob_free(&good[--n_good]);
    return 0;
}

static dr__decode_options options_of(dr__color_mode mode)
{
    dr__decode_options o;
    dr__decode_defaults(&o);
    o.mode = mode;
    o.exif_orient = true;
    return o;
}

/* Decodes anything; a failure must have a text.  Returns the status. */
static dr_status try_decode(dr_codec_state *state, const struct blob *b, dr__color_mode mode)
{
    struct picture p;
    dr_error err = { 0 };
    dr__decode_options o = options_of(mode);
    dr_status status = picture_decode(state, b, &o, NULL, &p, &err);
    if (status == DR_OK) {
        assert_true(picture_guarded(&p));
        picture_free(&p);
    } else {
        assert_true(status < 0);
        assert_int_equal(status, err.status);
        assert_true(err.text[0] != 0);
    }
    return status;
}

static void expect_same(dr_codec_state *warm, const struct blob *b)
{
    struct picture p, want;
    dr_codec_state *fresh = dr__codec_state_new();
    dr__decode_options o = options_of(DR__MODE_RGB);
    assert_int_equal(picture_decode(fresh, b, &o, NULL, &want, NULL), DR_OK);
    assert_int_equal(picture_decode(warm, b, &o, NULL, &p, NULL), DR_OK);
    assert_true(picture_matches(&p, &want));
    picture_free(&p);
    picture_free(&want);
    dr__codec_state_free(&fresh);
}

static void test_truncated(void **unused)
{
    (void)unused;
    dr_codec_state *state = dr__codec_state_new();
    for (int i = 0; i < n_good; i++) {
        for (size_t size = 0; size < good[i].size; size += 1 + good[i].size / 150) {
            struct blob b = blob_copy(good[i].data, size);
            dr_status status = try_decode(state, &b, DR__MODE_RGB);
            /* What ends well before its end cannot be whole; the last bytes may be dispensable. */
            if (size < good[i].size * 9 / 10)
                assert_true(status < 0);
            blob_free(&b);
        }
        expect_same(state, &good[i]);
    }
    dr__codec_state_free(&state);
}

static void test_damaged(void **unused)
{
    (void)unused;
    dr_codec_state *state = dr__codec_state_new();
    uint64_t s = 77;
    for (int i = 0; i < n_good; i++) {
        for (int round = 0; round < 300; round++) {
            struct blob b = blob_copy(good[i].data, good[i].size);
            for (int k = random_in(&s, 1, 6); k > 0; k--)
                b.data[random_in(&s, 0, (int)b.size - 1)] = (uint8_t)next_random(&s);
            try_decode(state, &b, (dr__color_mode)random_in(&s, 0, 3));
            blob_free(&b);
        }
        expect_same(state, &good[i]);
    }
    dr__codec_state_free(&state);
}

static void test_garbage(void **unused)
{
    (void)unused;
    dr_codec_state *state = dr__codec_state_new();
    uint64_t s = 78;
    for (int round = 0; round < 600; round++) {
        const struct blob *g = &good[round % n_good];
        struct blob b = blob_copy(g->data, (size_t)random_in(&s, 0, (int)g->size));
        size_t keep = round % 3 == 0 ? 0 : (size_t)random_in(&s, 0, 32); /* a true beginning now and then */
        for (size_t i = keep; i < b.size; i++)
            b.data[i] = (uint8_t)next_random(&s);
        assert_true(try_decode(state, &b, DR__MODE_RGB) < 0);
        blob_free(&b);
    }
    struct blob nothing = blob_copy(NULL, 0);
    assert_int_equal(try_decode(state, &nothing, DR__MODE_RGB), DR_ERR_FORMAT);
    blob_free(&nothing);
    dr__codec_state_free(&state);
}

/* Every allocation of ours fails once: an error, no crash, and the state works afterwards. */
static void test_no_memory(void **unused)
{
    (void)unused;
    for (int i = 0; i < n_good; i++) {
        long n = 1;
        for (dr_status status = DR_ERR_NOMEM; status != DR_OK; n++) {
            dr__alloc_fail_at(n, false);
            dr_codec_state *state = dr__codec_state_new();
            status = state ? try_decode(state, &good[i], DR__MODE_GRAY) : DR_ERR_NOMEM;
            dr__alloc_fail_at(0, false);
            if (state && status == DR_OK)
                expect_same(state, &good[i]);
            dr__codec_state_free(&state);
            assert_true(n < 200);
        }
        assert_true(n > 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("codec: damaged images", tests, set_up, tear_down);
}
