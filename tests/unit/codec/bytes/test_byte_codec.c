/* Byte codecs: every row of the table. */
#include "unit/cm.h"

#include <stdlib.h>
#include <string.h>

#include "codec/bytes/byte_codec.h"

enum { SIZE = 10000 };

static void fill(uint8_t *data, size_t size, bool noise)
{
    uint64_t x = 3;
    for (size_t i = 0; i < size; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = noise ? (uint8_t)(x >> 56) : (uint8_t)(i / 64);
    }
}

static void rows_are_complete(void **state)
{
    (void)state;
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++) {
        assert_true((*c)->name && (*c)->summary && (*c)->bound && (*c)->encode && (*c)->decode);
        assert_true((*c)->wire_id <= DR__BYTES_LAST);
        assert_ptr_equal(dr__byte_codec_find((*c)->wire_id), *c);
        for (const dr_byte_codec *const *other = dr__byte_codecs; other < c; other++) {
            assert_string_not_equal((*c)->name, (*other)->name);
            assert_int_not_equal((*c)->wire_id, (*other)->wire_id);
        }
    }
    assert_null(dr__byte_codec_find(DR__BYTES_LAST + 1));
    assert_string_equal(dr__byte_codec_find(DR__BYTES_NONE)->name, "none");
}

static void check_round_trip(const dr_byte_codec *codec, bool noise, size_t size)
{
    static uint8_t data[SIZE], back[SIZE];
    fill(data, size, noise);
    const size_t bound = codec->bound(size);
    assert_true(bound >= size);
    uint8_t *encoded = malloc(bound);
    const size_t n = codec->encode(data, size, encoded, bound);
    assert_true(n > 0 && n <= bound);
    assert_true(size / dr__byte_codec_ratio(codec->wire_id) <= n);
    memset(back, 0, sizeof back);
    assert_true(codec->decode(encoded, n, back, size));
    assert_memory_equal(data, back, size);
    assert_false(codec->decode(encoded, n, back, size - 1));
    assert_false(codec->decode(encoded, n - 1, back, size));
    assert_int_equal(codec->encode(data, size, encoded, n - 1), 0);
    free(encoded);
}

static void what_is_encoded_decodes_to_the_same(void **state)
{
    (void)state;
    const size_t sizes[] = { 1, 2, 63, 64, 4096, SIZE };
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            check_round_trip(*c, false, sizes[i]);
            check_round_trip(*c, true, sizes[i]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_are_complete),
                                        cmocka_unit_test(what_is_encoded_decodes_to_the_same) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
