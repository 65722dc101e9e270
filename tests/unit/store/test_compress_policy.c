/* Compression and the rule for it. */
#include "unit/store/scratch.h"

#include "base/alloc.h"
#include "store/compress_policy.h"

static void fill(uint8_t *data, size_t size, bool noise)
{
    uint64_t x = 3;
    for (size_t i = 0; i < size; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = noise ? (uint8_t)(x >> 56) : (uint8_t)(i / 64);
    }
}

static void what_is_packed_comes_back(void **state)
{
    (void)state;
    static uint8_t data[10000], back[10000];
    size_t n;
    fill(data, sizeof data, false);
    const dr_byte_codec *codec = dr__compress_codec();
    if (!codec)
        skip();
    uint8_t *packed = dr__compress(codec, data, sizeof data, &n);
    assert_non_null(packed);
    assert_true(n < sizeof data / 4);
    assert_true(codec->decode(packed, n, back, sizeof back));
    assert_memory_equal(data, back, sizeof data);
    dr__free(packed);
    fill(data, sizeof data, true);
    assert_null(dr__compress(codec, data, sizeof data, &n)); /* would grow */
    assert_null(dr__compress(codec, data, 0, &n));
}

static void it_is_on_where_it_pays(void **state)
{
    (void)state;
    if (!dr__compress_codec())
        skip();
    char text[160];
    dr__compress_policy s = { 0 };
    for (int i = 0; i < DR__COMPRESS_TRIALS; i++) {
        assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_TRY);
        dr__compress_note_trial(&s, 1000000, 500000, 900000); /* 1 ms for what is saved, at 500 MB/s */
    }
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_ON);
    dr__compress_explain(&s, text, sizeof text);
    assert_string_equal(text,
                        "LZ4: LZ4 makes 50% of the bytes; reading the rest takes 1000 us a sample, unpacking 900 us");
    s.unpack_ns *= 2;
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_OFF);
    s.packed_bytes = s.raw_bytes, s.unpack_ns = 0;
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_OFF);
}

static void try_all(dr__compress_policy *s, uint64_t packed_bytes)
{
    for (int i = 0; i < 3 * DR__COMPRESS_TRIALS; i++)
        dr__compress_note_trial(s, 1000000, packed_bytes, 900000);
}

/* Conditions change: a disk that is measured to be fast or slow, samples that become another kind. */
static void it_is_decided_anew(void **state)
{
    (void)state;
    if (!dr__compress_codec())
        skip();
    dr__compress_policy s = { 0 };
    try_all(&s, 500000);
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_ON);
    dr__compress_note_read(&s, 1 << 20, 1); /* too little to tell */
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_ON);
    for (int i = 0; i < 100; i++)
        dr__compress_note_read(&s, 1000000, 200000); /* 5 GB/s */
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_OFF);
    for (int i = 0; i < 300; i++)
        dr__compress_note_read(&s, 1000000, 10000000); /* 100 MB/s */
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_ON);
    for (int i = 0; i < DR__COMPRESS_AGAIN; i++)
        dr__compress_note_skipped(&s);
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_TRY);
    try_all(&s, 1000000);
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_OFF);
    s.fixed = true;
    assert_int_equal(dr__compress_choose(&s), DR__COMPRESS_ON);
}

/* Through a store: flat samples are kept in fewer bytes, noise as it is, both come back. */
static void a_store_chooses_by_its_samples(void **state)
{
    (void)state;
    static uint8_t data[100000], back[100032];
    for (int noise = 0; noise < 2; noise++) {
        dr_store *s = store_open(noise ? "noise" : "flat", 0);
        fill(data, sizeof data, noise);
        dr_view field = { data, 0, { .dtype = DR_U8, .n_dims = 1, .dims = { sizeof data } }, { 0 } };
        for (unsigned i = 0; i < DR__COMPRESS_TRIALS + 4; i++) {
            dr_stored found;
            dr_store_key key = key_of(s, i);
            assert_true(dr_store_put(s, &key, &field, 1));
            assert_true(dr_store_find(s, &key, &found));
            assert_true(found.bytes <= sizeof back && dr_store_read(s, &found, back));
            assert_memory_equal(back, data, sizeof data);
        }
        dr_store_stats stats;
        dr_store_get_stats(s, &stats);
        if (noise || !dr__compress_codec())
            assert_int_equal(stats.written_bytes, stats.raw_bytes);
        else
            assert_true(stats.written_bytes < stats.raw_bytes / 4);
        dr_store_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(it_is_on_where_it_pays),
        cmocka_unit_test(it_is_decided_anew),
        cmocka_unit_test_setup_teardown(a_store_chooses_by_its_samples, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
