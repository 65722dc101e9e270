/* Files of the reference tools, and dictionaries. */
#include "unit/cm.h"

#include <drapps/codec.h>

#include "codec/bytes/byte_codec.h"
#include "codec/chain/crc32c.h"
#include "codec/codec_config.h"

enum { SIZE = 300000, N_SAMPLES = 2000 };

static dr_error err;
static uint8_t data[SIZE];

static void fill(void)
{
    for (size_t i = 0; i < SIZE; i++)
        data[i] = i % 7 ? (uint8_t) "abcdefgh"[i / 50 % 8] : (uint8_t)(i * i >> 3);
}

static void check_damage(const uint8_t *file, size_t n, size_t size)
{
    uint8_t *out, *bad = malloc(n);
    size_t n_out;
    for (size_t i = 0; i < 300; i++) {
        memcpy(bad, file, n);
        const size_t at = i < 40 ? i % n : (i * 7919) % n, cut = i % 3 ? n : (i * 7919) % n;
        bad[at] ^= (uint8_t)(1u << i % 8);
        if (dr_codec_decompress(bad, cut, NULL, SIZE, &out, &n_out, NULL) == DR_OK) {
            assert_true(n_out <= size); /* a cut between two streams, a bit that says nothing */
            assert_memory_equal(out, data, n_out);
            dr_codec_free(out);
        }
    }
    free(bad);
}

static void check_file(const char *name, size_t size)
{
    dr_codec *codec = NULL;
    uint8_t *file, *out, *twice;
    size_t n, n_out;
    assert_ok(dr_codec_open(name, NULL, &codec, &err));
    if (!dr_codec_about(codec).extension) {
        assert_fails(dr_codec_compress(codec, data, size, &file, &n, &err), DR_ERR_ARG, "no file format");
        dr_codec_close(&codec);
        return;
    }
    assert_ok(dr_codec_compress(codec, data, size, &file, &n, &err));
    assert_ok(dr_codec_decompress(file, n, NULL, size, &out, &n_out, &err));
    assert_int_equal(n_out, size);
    assert_memory_equal(out, data, size);
    dr_codec_free(out);
    if (size)
        assert_int_equal(dr_codec_decompress(file, n, NULL, size - 1, &out, &n_out, &err), DR_ERR_LIMIT);
    assert_int_equal(dr_codec_decompress(file, n - 1, NULL, size, &out, &n_out, &err), DR_ERR_FORMAT);
    twice = malloc(2 * n);
    memcpy(twice, file, n);
    memcpy(twice + n, file, n);
    assert_ok(dr_codec_decompress(twice, 2 * n, NULL, 2 * size, &out, &n_out, &err));
    assert_int_equal(n_out, 2 * size);
    dr_codec_free(out);
    twice[n] = 1;
    assert_fails(dr_codec_decompress(twice, n + 1, NULL, SIZE, &out, &n_out, &err), DR_ERR_FORMAT, "");
    free(twice);
    check_damage(file, n, size);
    dr_codec_free(file);
    dr_codec_close(&codec);
}

static void files_come_back(void **state)
{
    (void)state;
    const size_t sizes[] = { 1, 100, 65536, 65537, SIZE };
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_file((*c)->name, sizes[i]);
}

static void other_bytes_are_no_file(void **state)
{
    (void)state;
    uint8_t *out;
    size_t n;
    assert_fails(dr_codec_decompress("hello", 5, NULL, 100, &out, &n, &err), DR_ERR_FORMAT, "not a .zst, .lz4 or .sz");
    assert_fails(dr_codec_decompress("", 0, NULL, 100, &out, &n, &err), DR_ERR_FORMAT, "not a .zst");
}

static void crc32c_is_that_of_the_standard(void **state)
{
    (void)state;
    uint8_t zeros[32] = { 0 };
    assert_int_equal(dr__crc32c((const uint8_t *)"123456789", 9), 0xe3069283); /* RFC 3720, B.4, and its check value */
    assert_int_equal(dr__crc32c(zeros, 32), 0x8a9136aa);
}

#ifdef DR_HAVE_ZSTD

/* Small samples of one kind, one after the other. */
static size_t make_samples(char *text, size_t *sizes)
{
    char *at = text;
    for (unsigned i = 0; i < N_SAMPLES; i++) {
        sizes[i] = (size_t)sprintf(at, "{\"image_id\": %u, \"category\": \"cat%u\", \"bbox\": [%u, %u, %u, %u]}",
                                   i * 7919, i % 13, i * 31 % 640, i * 17 % 480, i * 7 % 100, i * 3 % 90);
        at += sizes[i];
    }
    return (size_t)(at - text);
}

static void dictionaries_help_small_samples(void **state)
{
    (void)state;
    static char text[N_SAMPLES * 120], back[200];
    static size_t sizes[N_SAMPLES];
    static uint8_t frame[1000];
    dr_codec_dict *dict = NULL, *copy = NULL;
    dr_codec *plain = NULL, *with = NULL;
    dr_codec_frame facts;
    size_t n_plain, n_with, n_dict;
    make_samples(text, sizes);
    assert_ok(dr_codec_dict_train(text, sizes, N_SAMPLES, 8192, &dict, &err));
    assert_ok(dr_codec_open("zstd", NULL, &plain, &err));
    assert_ok(dr_codec_open("zstd", dict, &with, &err));
    const dr_desc desc = { .kind = DR_KIND_TEXT, .dtype = DR_U8, .n_dims = 1, .dims = { (int64_t)sizes[0] } };
    assert_ok(dr_codec_encode(plain, &desc, text, frame, sizeof frame, &n_plain, &err));
    assert_ok(dr_codec_encode(with, &desc, text, frame, sizeof frame, &n_with, &err));
    assert_true(n_with < n_plain);

    const void *bytes = dr_codec_dict_bytes(dict, &n_dict);
    assert_ok(dr_codec_dict_open(bytes, n_dict, &copy, &err));
    assert_int_equal(dr_codec_dict_id(copy), dr_codec_dict_id(dict));
    dr_codec_dict_close(&dict); /* the codec keeps it */
    dr_codec_close(&with);
    assert_ok(dr_codec_peek(frame, n_with, &facts, &err));
    assert_int_equal(facts.dict_id, dr_codec_dict_id(copy));
    assert_ok(dr_codec_decode(frame, n_with, copy, back, sizes[0], &err));
    assert_memory_equal(back, text, sizes[0]);
    assert_fails(dr_codec_decode(frame, n_with, NULL, back, sizes[0], &err), DR_ERR_ARG, "needs the dictionary");
    dr_codec_dict_close(&copy);
    dr_codec_close(&plain);
}

static void wrong_dictionaries_are_refused(void **state)
{
    (void)state;
    dr_codec_dict *dict = NULL;
    dr_codec *codec = NULL;
    const size_t sizes[] = { 3, 3 };
    static char text[N_SAMPLES * 120];
    static size_t many[N_SAMPLES];
    assert_fails(dr_codec_dict_open("abcdefgh", 8, &dict, &err), DR_ERR_FORMAT, "not a dictionary");
    assert_fails(dr_codec_dict_train("abcabc", sizes, 2, 1000, &dict, &err), DR_ERR_ARG, "from 2 samples");
    make_samples(text, many);
    assert_ok(dr_codec_dict_train(text, many, N_SAMPLES, 8192, &dict, &err));
    assert_fails(dr_codec_open("shuffle", dict, &codec, &err), DR_ERR_ARG, "a dictionary needs a zstd stage");
    dr_codec_dict_close(&dict);
}

#endif

int main(void)
{
    fill();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(other_bytes_are_no_file),
        cmocka_unit_test(crc32c_is_that_of_the_standard),
#ifdef DR_HAVE_ZSTD
        cmocka_unit_test(dictionaries_help_small_samples),
        cmocka_unit_test(wrong_dictionaries_are_refused),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
