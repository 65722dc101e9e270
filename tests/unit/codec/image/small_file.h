/* small_file.h: what the tests of single codecs ask of a file of a few bytes. */
#ifndef DR_TESTS_SMALL_FILE_H
#define DR_TESTS_SMALL_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "unit/codec/image/decode_helper.h"

static inline dr__decode_options options_of(dr__color_mode mode)
{
    dr__decode_options o;
    dr__decode_defaults(&o);
    o.mode = mode;
    return o;
}

/* The pixels of the whole file, densely. */
static inline void expect_pixels(const void *file, size_t size, dr__color_mode mode, const void *want, size_t n)
{
    struct blob b = blob_copy(file, size);
    dr__decode_options o = options_of(mode);
    dr_codec_state *state = dr__codec_state_new();
    struct picture p;
    dr_error err = { 0 };
    if (picture_decode(state, &b, &o, NULL, &p, &err) != DR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(p.row * (size_t)p.rect.h, n);
    for (int64_t y = 0; y < p.rect.h; y++)
        assert_memory_equal(p.pixels + (size_t)y * p.stride, (const uint8_t *)want + (size_t)y * p.row, p.row);
    picture_free(&p);
    dr__codec_state_free(&state);
    blob_free(&b);
}

/* Every rectangle is what lies at its place in the whole. */
static inline void expect_parts(const void *file, size_t size, dr__color_mode mode)
{
    struct blob b = blob_copy(file, size);
    dr__decode_options o = options_of(mode);
    dr_codec_state *state = dr__codec_state_new();
    struct picture whole, part;
    assert_int_equal(picture_decode(state, &b, &o, NULL, &whole, NULL), DR_OK);
    dr_rect r;
    for (r.y = 0; r.y < whole.rect.h; r.y++)
        for (r.x = 0; r.x < whole.rect.w; r.x++)
            for (r.h = 1; r.h <= whole.rect.h - r.y; r.h++)
                for (r.w = 1; r.w <= whole.rect.w - r.x; r.w++) {
                    assert_int_equal(picture_decode(state, &b, &o, &r, &part, NULL), DR_OK);
                    assert_true(picture_matches(&part, &whole));
                    picture_free(&part);
                }
    picture_free(&whole);
    dr__codec_state_free(&state);
    blob_free(&b);
}

static inline dr_status decode_with(const void *file, size_t size, const dr__decode_options *o, dr_error *err)
{
    struct blob b = blob_copy(file, size);
    dr_codec_state *state = dr__codec_state_new();
    struct picture p;
    dr_status status = picture_decode(state, &b, o, NULL, &p, err);
    if (status == DR_OK)
        picture_free(&p);
    dr__codec_state_free(&state);
    blob_free(&b);
    return status;
}

static inline void expect_error(const void *file, size_t size, dr_status status, const char *word)
{
    dr__decode_options o = options_of(DR__MODE_RGB);
    dr_error err = { 0 };
    assert_int_equal(decode_with(file, size, &o, &err), status);
    if (!strstr(err.text, word))
        fail_msg("\"%s\" does not say %s", err.text, word);
}

/* Limits below what the file needs, and every beginning of it: errors, and none without a text. */
static inline void expect_bounds(const void *file, size_t size)
{
    dr_error err = { 0 };
    dr__decode_options o = options_of(DR__MODE_RGB);
    assert_int_equal(decode_with(file, size, &o, &err), DR_OK);
    o.max_side = 1;
    assert_int_equal(decode_with(file, size, &o, &err), DR_ERR_LIMIT);
    o = options_of(DR__MODE_RGB);
    o.max_pixels = 1;
    assert_int_equal(decode_with(file, size, &o, &err), DR_ERR_LIMIT);
    o = options_of(DR__MODE_RGB);
    for (size_t cut = 0; cut < size; cut++) {
        err.text[0] = 0;
        if (decode_with(file, cut, &o, &err) != DR_OK)
            assert_true(err.text[0]);
    }
}

/* The n-th allocation fails: an error, and the same decoder goes on afterwards. */
static inline void expect_survival(const void *file, size_t size)
{
    struct blob b = blob_copy(file, size);
    dr__decode_options o = options_of(DR__MODE_RGB);
    struct picture p;
    dr_status status = DR_ERR_NOMEM;
    for (int n = 1; status != DR_OK; n++) {
        dr_codec_state *state = dr__codec_state_new();
        dr__alloc_fail_at((unsigned)n, false);
        status = picture_decode(state, &b, &o, NULL, &p, NULL);
        dr__alloc_fail_at(0, false);
        if (status != DR_OK) {
            assert_int_equal(status, DR_ERR_NOMEM);
            assert_int_equal(picture_decode(state, &b, &o, NULL, &p, NULL), DR_OK);
        }
        picture_free(&p);
        dr__codec_state_free(&state);
    }
    blob_free(&b);
}

#endif
