/* test_tar_write.c: what tar_write.c writes is what tar_reader.c reads. */
#include "../cm.h"

#include <string.h>

#include "base/alloc.h"
#include "format/tar_reader.h"
#include "format/tar_write.h"

static void put(dr__text *t, const char *name, const char *text)
{
    dr__tar_put_header(t, name, strlen(text));
    dr__text_say(t, text);
    dr__tar_put_padding(t, strlen(text));
}

static void test_members(void **state)
{
    (void)state;
    char name[400], long_text[1025];
    dr__text t = { 0 };
    dr__source *source;
    dr__tar_reader reader;
    dr__tar_member member;
    const int lengths[] = { 1, 50, 98, 99, 100, 101, 155, 256, 399 };
    const int sizes[] = { 0, 1, 511, 512, 513, 1024 };
    memset(long_text, 'x', sizeof long_text);
    for (int i = 0; i < 9 * 6; i++) {
        memset(name, 'n', sizeof name);
        name[lengths[i / 6]] = 0;
        long_text[sizes[i % 6]] = 0;
        put(&t, name, long_text);
        long_text[sizes[i % 6]] = 'x';
        assert_int_equal(t.n % 512, 0);
    }
    assert_int_equal(dr__source_memory(t.text, t.n, "memory", &source, NULL), DR_OK);
    assert_int_equal(dr__tar_open(&reader, source, NULL), DR_OK);
    for (int i = 0; i < 9 * 6; i++) {
        assert_int_equal(dr__tar_next(&reader, &member, NULL), DR_OK);
        assert_int_equal(member.name_len, lengths[i / 6]);
        assert_int_equal(member.size, sizes[i % 6]);
        for (uint64_t k = 0; k < member.size; k++)
            assert_int_equal(t.text[member.offset + k], 'x');
    }
    assert_int_equal(dr__tar_next(&reader, &member, NULL), DR_END);
    dr__source_close(&source);
    dr__free(t.text);
}

static void test_large_sizes(void **state)
{
    (void)state;
    const uint64_t sizes[] = { UINT64_C(077777777777), UINT64_C(0100000000000), UINT64_C(1) << 50 };
    for (int i = 0; i < 3; i++) {
        dr__text t = { 0 };
        uint64_t size = 0;
        dr__tar_put_header(&t, "large", sizes[i]);
        const uint8_t *field = (const uint8_t *)t.text + 124;
        if (field[0] & 0x80)
            for (int k = 4; k < 12; k++)
                size = size << 8 | field[k];
        else
            for (int k = 0; k < 11; k++)
                size = size * 8 + (uint64_t)(field[k] - '0');
        assert_true(size == sizes[i]);
        dr__free(t.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_large_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
