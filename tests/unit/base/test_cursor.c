/* test_cursor.c: bounded reads; and the permutation's way back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cursor.h"
#include "base/permute.h"

static void numbers_are_little_endian(void **state)
{
    (void)state;
    const uint8_t bytes[] = { 7, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8 };
    dr_cursor c = dr__cursor(bytes, sizeof bytes, "test");
    uint8_t a;
    uint32_t b;
    uint64_t d;
    assert_int_equal(dr__cursor_u8(&c, &a, NULL), DR_OK);
    assert_int_equal(dr__cursor_u32(&c, &b, NULL), DR_OK);
    assert_int_equal(dr__cursor_u64(&c, &d, NULL), DR_OK);
    assert_int_equal(a, 7);
    assert_int_equal(b, 0x04030201);
    assert_true(d == 0x0807060504030201u);
    assert_int_equal(dr__cursor_left(&c), 0);
}

static void overruns_fail_and_do_not_move(void **state)
{
    (void)state;
    const uint8_t bytes[3] = { 1, 2, 3 };
    dr_cursor c = dr__cursor(bytes, sizeof bytes, "the thing");
    dr_error err;
    uint32_t v;
    const uint8_t *p;
    const char *text;
    size_t len;
    assert_int_equal(dr__cursor_u32(&c, &v, &err), DR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "the thing"));
    assert_non_null(strstr(err.text, "4 bytes needed, 3 left"));
    assert_int_equal(dr__cursor_bytes(&c, SIZE_MAX, &p, &err), DR_ERR_FORMAT);
    assert_int_equal(dr__cursor_text(&c, &text, &len, &err), DR_ERR_FORMAT); /* no zero byte */
    assert_int_equal(dr__cursor_left(&c), 3);
}

static void lines_of_all_kinds(void **state)
{
    (void)state;
    const char text[] = "a\r\n\nb\nlast";
    dr_cursor c = dr__cursor(text, sizeof text - 1, "test");
    const char *want[] = { "a", "", "b", "last" };
    const char *line;
    size_t len;
    for (int i = 0; i < 4; i++) {
        assert_true(dr__cursor_line(&c, &line, &len));
        assert_int_equal(len, strlen(want[i]));
        assert_memory_equal(line, want[i], len);
    }
    assert_false(dr__cursor_line(&c, &line, &len));
}

static void inverse_undoes_the_permutation(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 300; n += 7)
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(dr__permute_inverse(n, 99, dr__permute(n, 99, i)), i);
    uint64_t big = 1281167;
    for (uint64_t i = 0; i < big; i += 10007)
        assert_int_equal(dr__permute(big, 5, dr__permute_inverse(big, 5, i)), i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(overruns_fail_and_do_not_move),
        cmocka_unit_test(lines_of_all_kinds),
        cmocka_unit_test(inverse_undoes_the_permutation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
