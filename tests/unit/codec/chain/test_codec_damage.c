/* Damaged streams of every codec: each byte codec and array stage of the tables alone, each stage before each byte
 * codec, and each file format; so many flips and so many cuts of each: test_codec_damage [N].  CODEC_SEED repeats a
 * run.
 *
 * What is accepted must be the original.  Streams lie in memory of exactly their size, so that a sanitizer sees a read
 * or a write beyond an end.
 */
#include <math.h>
#include <time.h>

#include "unit/cm.h"

#include <drapps/codec.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "codec/array/array_stage.h"
#include "codec/bytes/byte_codec.h"
#include "codec/chain/codec_chain.h"

enum { BYTES = 4096, FRAME = 16384 };

static long n_each = 1000;
static dr_rng rng;
static dr_error err;

static const dr_dtype types[] = { DR_I32, DR_F32, DR_U16, DR_F64, DR_I64, DR_U8 };

/* Numbers that every stage takes and most make smaller. */
static void fill(uint8_t *data, dr_dtype type)
{
    const size_t size = dr_dtype_size(type);
    for (size_t i = 0; i < BYTES / size; i++) {
        const uint64_t whole = (i * 3 + dr__rng_below(&rng, 4)) % 200;
        const float single = sinf((float)i / 50) * 20;
        const double both = single;
        memcpy(data + i * size,
               type == DR_F32   ? (const void *)&single
               : type == DR_F64 ? (void *)&both
                                : (void *)&whole,
               size);
    }
}

/* A copy of `data` that has some bits flipped, or that ends early; the caller frees it. */
static uint8_t *damaged(const uint8_t *data, size_t *n, bool cut)
{
    const size_t left = cut ? dr__rng_below(&rng, *n) : *n;
    uint8_t *bad = malloc(left ? left : 1);
    memcpy(bad, data, left);
    for (uint64_t k = cut ? 0 : 1 + dr__rng_below(&rng, 3); k; k--)
        bad[dr__rng_below(&rng, left)] ^= (uint8_t)(1u << dr__rng_below(&rng, 8));
    *n = left;
    return bad;
}

/* Calls check(bad, n, user) for so many flips and so many cuts. */
static void spoil(const uint8_t *data, size_t size, void (*check)(const uint8_t *bad, size_t n, void *user), void *user)
{
    for (long i = 0; i < 2 * n_each; i++) {
        size_t n = size;
        uint8_t *bad = damaged(data, &n, i % 2);
        check(bad, n, user);
        free(bad);
    }
}

/* --- frames --- */

typedef struct original {
    const uint8_t *data; /* what the whole stream decodes to */
    size_t size;
    const char *spec;
} original;

static void check_frame(const uint8_t *bad, size_t n, void *user)
{
    const original *o = user;
    dr_codec_frame f;
    if (dr_codec_peek(bad, n, &f, &err) != DR_OK) {
        assert_true(err.text[0]);
        return;
    }
    if (f.raw_bytes > 4 * BYTES)
        return;
    uint8_t *out = malloc(f.raw_bytes ? f.raw_bytes : 1);
    if (dr_codec_decode(bad, n, NULL, out, f.raw_bytes, &err) == DR_OK &&
        (f.raw_bytes != o->size || memcmp(out, o->data, o->size) != 0))
        fail_msg("%s: a damaged frame was decoded to something else", o->spec);
    free(out);
}

/* A frame of the chain, whole and damaged; chains that take none of the types are left out. */
static bool try_chain(const dr__chain *chain)
{
    static uint8_t data[BYTES], back[BYTES], frame[FRAME];
    dr__chain_plan plan;
    char spec[DR_CODEC_SPEC_TEXT];
    dr_codec *codec = NULL;
    size_t bound, n, which = 0;
    while (which < DR_COUNT(types) && dr__chain_plan_for(chain, types[which], &plan, NULL) != DR_OK)
        which++;
    if (which == DR_COUNT(types))
        return false;
    const dr_desc desc = { .dtype = types[which],
                           .n_dims = 1,
                           .dims = { BYTES / (int64_t)dr_dtype_size(types[which]) } };
    dr__chain_text(chain, spec);
    fill(data, types[which]);
    assert_ok(dr_codec_open(spec, NULL, &codec, &err));
    assert_ok(dr_codec_bound(codec, &desc, &bound, &err));
    assert_true(bound <= FRAME);
    assert_ok(dr_codec_encode(codec, &desc, data, frame, bound, &n, &err));
    assert_ok(dr_codec_decode(frame, n, NULL, back, BYTES, &err));
    if (dr_codec_about(codec).lossless)
        assert_memory_equal(back, data, BYTES);
    spoil(frame, n, check_frame, &(original){ back, BYTES, spec });
    dr_codec_close(&codec);
    return true;
}

static void damaged_frames_are_never_other_data(void **state)
{
    (void)state;
    unsigned n_tried = 0, n_stages = 0;
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++) {
        dr__chain alone = { 0 };
        assert_ok(dr__chain_add(&alone, (*c)->wire_id, (*c)->default_level, &err));
        assert_true(try_chain(&alone));
        n_tried++;
    }
    for (const dr__array_stage *const *s = dr__array_stages; *s; s++, n_stages++) {
        dr__chain alone = { 0 };
        assert_ok(dr__chain_add(&alone, (*s)->wire_id, 0, &err));
        if (!try_chain(&alone))
            fail_msg("%s takes none of the types", (*s)->name);
        for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++) {
            dr__chain both = alone;
            assert_ok(dr__chain_add(&both, (*c)->wire_id, (*c)->default_level, &err));
            n_tried += try_chain(&both);
        }
    }
    assert_true(n_tried > n_stages);
}

/* --- streams without a frame: their users have checksums, so that they may become other data, but nothing else --- */

static void check_bytes(const uint8_t *bad, size_t n, void *user)
{
    const dr_byte_codec *codec = user;
    uint8_t *out = malloc(BYTES);
    codec->decode(bad, n, out, BYTES);
    free(out);
}

static void damaged_bytes_stay_within_their_memory(void **state)
{
    (void)state;
    static uint8_t data[BYTES], encoded[FRAME];
    fill(data, DR_U16);
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++) {
        assert_true((*c)->bound(BYTES) <= FRAME);
        const size_t n = (*c)->encode(data, BYTES, encoded, FRAME);
        assert_true(n);
        spoil(encoded, n, check_bytes, (void *)*c);
    }
}

typedef struct staged {
    const dr__array_stage *stage;
    dr__elem elem;
} staged;

static void check_stage(const uint8_t *bad, size_t n, void *user)
{
    const staged *s = user;
    const size_t count = BYTES / s->elem.size;
    if (s->stage->fixed && n != s->stage->bound(count, s->elem))
        return; /* chains check that beforehand */
    uint8_t *out = malloc(BYTES);
    s->stage->decode(bad, n, out, count, s->elem);
    free(out);
}

static void damaged_stages_stay_within_their_memory(void **state)
{
    (void)state;
    static const dr__elem elems[] = { { DR__ELEM_INT, 4 }, { DR__ELEM_FLOAT, 4 } };
    static uint8_t data[BYTES], encoded[FRAME];
    dr__stage_note note;
    for (const dr__array_stage *const *s = dr__array_stages; *s; s++) {
        const dr__elem elem = elems[(*s)->takes(elems[0]) ? 0 : 1];
        assert_true((*s)->takes(elem));
        fill(data, elem.kind == DR__ELEM_INT ? DR_I32 : DR_F32);
        assert_true((*s)->bound(BYTES / elem.size, elem) <= FRAME);
        const size_t n = (*s)->encode(data, BYTES / elem.size, elem, encoded, &note);
        assert_true(n);
        spoil(encoded, n, check_stage, &(staged){ *s, elem });
    }
}

/* --- files --- */

static void check_file(const uint8_t *bad, size_t n, void *user)
{
    const original *o = user;
    uint8_t *out;
    size_t n_out;
    if (dr_codec_decompress(bad, n, NULL, 4 * BYTES, &out, &n_out, &err) != DR_OK) {
        assert_true(err.text[0]);
        return;
    }
    const bool may_lack =
        !strcmp(o->spec, "snappy") && n_out == 0; /* the format has no end, and chunks to be skipped */
    if (!may_lack && (n_out != o->size || memcmp(out, o->data, n_out) != 0))
        fail_msg("%s: a damaged file was decompressed to something else, %zu bytes", o->spec, n_out);
    dr_codec_free(out);
}

static void damaged_files_are_never_other_data(void **state)
{
    (void)state;
    static uint8_t data[BYTES];
    unsigned n_formats = 0;
    fill(data, DR_U16);
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++) {
        dr_codec *codec = NULL;
        uint8_t *file;
        size_t n;
        assert_ok(dr_codec_open((*c)->name, NULL, &codec, &err));
        if (dr_codec_about(codec).extension) {
            n_formats++;
            assert_ok(dr_codec_compress(codec, data, BYTES, &file, &n, &err));
            spoil(file, n, check_file, &(original){ data, BYTES, (*c)->name });
            dr_codec_free(file);
        }
        dr_codec_close(&codec);
    }
    if (dr__byte_codec_find(DR__BYTES_LZ4) || dr__byte_codec_find(DR__BYTES_ZSTD) ||
        dr__byte_codec_find(DR__BYTES_SNAPPY))
        assert_true(n_formats);
}

int main(int argc, char **argv)
{
    const char *given = getenv("CODEC_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("CODEC_SEED=%llu\n", (unsigned long long)seed);
    rng = dr__rng_open(&(dr__rng_name){ .seed = seed }, 0);
    if (argc > 1)
        n_each = atol(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_frames_are_never_other_data),
        cmocka_unit_test(damaged_bytes_stay_within_their_memory),
        cmocka_unit_test(damaged_stages_stay_within_their_memory),
        cmocka_unit_test(damaged_files_are_never_other_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
