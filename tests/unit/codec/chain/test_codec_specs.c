/* Specs, handles, tables, and frames of several blocks. */
#include <math.h>

#include <jansson.h>

#include "unit/cm.h"

#include <drapps/codec.h>

#include "base/alloc.h"
#include "codec/chain/codec_chain.h"
#include "codec/codec_config.h"

static dr_error err;

static void expect_spec(const char *spec, const char *canonical)
{
    dr_codec *codec = NULL;
    assert_ok(dr_codec_open(spec, NULL, &codec, &err));
    assert_string_equal(dr_codec_about(codec).spec, canonical);
    dr_codec_close(&codec);
    assert_null(codec);
    dr_codec_close(&codec);
}

static void specs_become_canonical(void **state)
{
    (void)state;
    expect_spec("none", "none");
    expect_spec("u16", "u16");
    expect_spec("delta+bitshuffle+none", "delta+bitshuffle+none");
#ifdef DR_HAVE_ZSTD
    expect_spec("zstd", "zstd:3");
    expect_spec("bf16+shuffle+zstd:-5", "bf16+shuffle+zstd:-5");
#endif
#ifdef DR_HAVE_LZ4
    expect_spec("lz4", "lz4");
    expect_spec("shuffle+lz4hc", "shuffle+lz4hc:9");
#endif
}

static void wrong_specs_are_explained(void **state)
{
    (void)state;
    dr_codec *codec = NULL;
    char longer[DR_CODEC_SPEC_TEXT + 1];
    memset(longer, 'a', sizeof longer);
    longer[DR_CODEC_SPEC_TEXT] = 0;
    assert_fails(dr_codec_open("", NULL, &codec, &err), DR_ERR_ARG, "empty");
    assert_fails(dr_codec_open(NULL, NULL, &codec, &err), DR_ERR_ARG, "empty");
    assert_fails(dr_codec_open(longer, NULL, &codec, &err), DR_ERR_ARG, "at most 127 characters, got 128");
    assert_fails(dr_codec_open("zlib", NULL, &codec, &err), DR_ERR_ARG, "no stage \"zlib\"; stages: shuffle");
    assert_fails(dr_codec_open("shuffle+", NULL, &codec, &err), DR_ERR_ARG, "no stage \"\"");
    assert_fails(dr_codec_open("none+shuffle", NULL, &codec, &err), DR_ERR_ARG, "none must be the last stage");
    assert_fails(dr_codec_open("shuffle:4", NULL, &codec, &err), DR_ERR_ARG, "shuffle has no parameter");
    assert_fails(dr_codec_open("delta+delta+delta+delta+delta+delta+delta", NULL, &codec, &err), DR_ERR_ARG,
                 "must have at most 6 stages");
#ifdef DR_HAVE_ZSTD
    assert_fails(dr_codec_open("zstd:99", NULL, &codec, &err), DR_ERR_ARG, "an integer from -50 to 22, got \"99\"");
    assert_fails(dr_codec_open("zstd:", NULL, &codec, &err), DR_ERR_ARG, "got \"\"");
#else
    assert_fails(dr_codec_open("zstd", NULL, &codec, &err), DR_ERR_UNSUPPORTED, "this build has no zstd");
#endif
    assert_null(codec);
}

static void types_that_a_stage_does_not_take_are_refused(void **state)
{
    (void)state;
    dr_codec *codec = NULL;
    const dr_desc floats = { .dtype = DR_F32, .n_dims = 1, .dims = { 4 } };
    size_t n;
    assert_ok(dr_codec_open("u16", NULL, &codec, &err));
    assert_false(dr_codec_takes(codec, DR_F32));
    assert_true(dr_codec_takes(codec, DR_I64));
    assert_false(dr_codec_takes(codec, (dr_dtype)99));
    assert_fails(dr_codec_bound(codec, &floats, &n, &err), DR_ERR_ARG, "u16 does not take float32");
    const dr_desc unknown = { .dtype = DR_I32, .n_dims = 1, .dims = { DR_UNKNOWN } };
    assert_fails(dr_codec_bound(codec, &unknown, &n, &err), DR_ERR_ARG, "must be known");
    const dr_desc many = { .dtype = DR_I32, .n_dims = 9 };
    assert_fails(dr_codec_bound(codec, &many, &n, &err), DR_ERR_ARG, "n_dims must be 0 to 8, got 9");
    const dr_desc huge = { .dtype = DR_I32, .n_dims = 1, .dims = { (int64_t)1 << 60 } };
    assert_fails(dr_codec_bound(codec, &huge, &n, &err), DR_ERR_LIMIT, "64 TiB");
    dr_codec_close(&codec);
}

static void the_table_is_json_and_complete(void **state)
{
    (void)state;
    json_t *list = json_loads(dr_codec_stages_json(), 0, NULL), *row;
    size_t i, n_types = 0;
    assert_non_null(list);
    json_array_foreach(list, i, row)
    {
        assert_true(strlen(json_string_value(json_object_get(row, "name"))) > 0);
        assert_true(strlen(json_string_value(json_object_get(row, "summary"))) > 0);
        n_types += json_array_size(json_object_get(row, "types"));
        const bool lossy = !strcmp(json_string_value(json_object_get(row, "kind")), "lossy");
        assert_int_equal(lossy, json_is_string(json_object_get(row, "error")));
    }
    assert_true(i >= 11 && n_types > 50);
    json_decref(list);
}

static void wire_ids_are_unique_and_known(void **state)
{
    (void)state;
    for (const dr__array_stage *const *s = dr__array_stages; *s; s++) {
        assert_true((*s)->wire_id >= DR__STAGE_SHUFFLE && (*s)->wire_id <= DR__STAGE_LAST);
        assert_ptr_equal(dr__array_stage_find((*s)->wire_id), *s);
        assert_null(dr__byte_codec_find((*s)->wire_id));
    }
    dr__chain chain = { 0 };
    assert_fails(dr__chain_add(&chain, 200, 0, &err), DR_ERR_UNSUPPORTED, "number 200");
}

static dr_codec_frame round_trip(const char *spec, const dr_desc *desc, const void *data, size_t bytes, size_t *n_out)
{
    dr_codec *codec = NULL;
    dr_codec_frame facts;
    size_t bound;
    assert_ok(dr_codec_open(spec, NULL, &codec, &err));
    assert_ok(dr_codec_bound(codec, desc, &bound, &err));
    uint8_t *frame = malloc(bound), *back = malloc(bytes);
    assert_ok(dr_codec_encode(codec, desc, data, frame, bound, n_out, &err));
    assert_ok(dr_codec_peek(frame, *n_out, &facts, &err));
    assert_int_equal(facts.raw_bytes, bytes);
    assert_ok(dr_codec_decode(frame, *n_out, NULL, back, bytes, &err));
    if (facts.lossless)
        assert_memory_equal(back, data, bytes);
    assert_fails(dr_codec_decode(frame, *n_out, NULL, back, bytes - 1, &err), DR_ERR_ARG, "out_size must be");
    frame[*n_out / 2] ^= 4;
    assert_int_equal(dr_codec_decode(frame, *n_out, NULL, back, bytes, &err), DR_ERR_FORMAT);
    free(frame);
    free(back);
    dr_codec_close(&codec);
    return facts;
}

enum { BIG = 700001 };

/* Several blocks and a last one of an odd size; the middle ones are noise, which is stored as it is. */
static void arrays_of_several_blocks(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "none", "shuffle", "bitshuffle+none", "bitpack", "delta+svb", "delta+bitpack"
    };
    int32_t *x = malloc(BIG * sizeof *x);
    uint32_t noise = 1;
    for (int i = 0; i < BIG; i++) {
        noise = noise * 1664525 + 1013904223;
        x[i] = i > 200000 && i < 400000 ? (int32_t)noise : i / 7;
    }
    const dr_desc desc = { .dtype = DR_I32, .n_dims = 2, .dims = { 7, BIG / 7 } };
    const size_t bytes = (size_t)(BIG / 7 * 7) * 4;
    size_t n;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        round_trip(specs[i], &desc, x, bytes, &n);
        assert_true(n < bytes + 400);
    }
    round_trip("delta+bitpack", &desc, x, bytes, &n);
    assert_true(n < bytes / 2);
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++) {
        char spec[64];
        snprintf(spec, sizeof spec, "delta+shuffle+%s", (*c)->name);
        round_trip(spec, &desc, x, bytes, &n);
        round_trip((*c)->name, &desc, x, bytes, &n);
    }
    free(x);
}

static void lossy_values_beyond_the_type_are_named(void **state)
{
    (void)state;
    float x[100] = { 0 };
    const dr_desc desc = { .dtype = DR_F32, .n_dims = 1, .dims = { 100 } };
    uint8_t frame[1000];
    size_t n;
    dr_codec *codec = NULL;
    x[41] = 70000;
    assert_ok(dr_codec_open("fp16", NULL, &codec, &err));
    assert_fails(dr_codec_encode(codec, &desc, x, frame, sizeof frame, &n, &err), DR_ERR_ARG,
                 "element 41 is 70000, which float16 cannot hold");
    dr_codec_close(&codec);
    x[41] = NAN;
    assert_ok(dr_codec_open("int8", NULL, &codec, &err));
    assert_fails(dr_codec_encode(codec, &desc, x, frame, sizeof frame, &n, &err), DR_ERR_ARG, "element 41 is nan");
    dr_codec_close(&codec);
}

/* Each allocation of a call fails once: the call says so, or finds a way without. */
static void no_memory_is_an_error(void **state)
{
    (void)state;
    static float x[3000], back[3000];
    static uint8_t frame[30000];
    const dr_desc desc = { .dtype = DR_F32, .n_dims = 1, .dims = { 3000 } };
    for (long fail = 1; fail < 12; fail++) {
        dr_codec *codec = NULL;
        size_t n;
        dr__alloc_fail_at(fail, true);
        dr_status status = dr_codec_open("bf16+shuffle", NULL, &codec, &err);
        if (status == DR_OK)
            status = dr_codec_encode(codec, &desc, x, frame, sizeof frame, &n, &err);
        if (status == DR_OK)
            status = dr_codec_decode(frame, n, NULL, back, sizeof back, &err);
        dr__alloc_fail_at(0, false);
        assert_true(status == DR_OK || status == DR_ERR_NOMEM);
        dr_codec_close(&codec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_is_an_error), /* first: scratch memory is kept */
        cmocka_unit_test(specs_become_canonical),
        cmocka_unit_test(wrong_specs_are_explained),
        cmocka_unit_test(types_that_a_stage_does_not_take_are_refused),
        cmocka_unit_test(the_table_is_json_and_complete),
        cmocka_unit_test(wire_ids_are_unique_and_known),
        cmocka_unit_test(arrays_of_several_blocks),
        cmocka_unit_test(lossy_values_beyond_the_type_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
