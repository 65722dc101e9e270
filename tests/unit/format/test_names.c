/* test_names.c: texts in a block, and their order. */
#include "tree.h"

#include "base/alloc.h"
#include "format/names.h"

static void texts_come_back(void **state)
{
    (void)state;
    dr__names names = { 0 };
    char text[32];
    const int n = 3 * DR__NAMES_CHUNK + 5;
    for (int i = 0; i < n; i++)
        assert_true(dr__names_add(&names, text, (size_t)snprintf(text, sizeof text, "name%d", i)));
    dr__names_shrink(&names);
    for (int i = 0; i < n; i++) {
        size_t len = (size_t)snprintf(text, sizeof text, "name%d", i);
        assert_string_equal(dr__names_get(&names, (size_t)i), text);
        assert_int_equal(dr__names_len(&names, (size_t)i), len);
    }
    dr__names_free(&names);
}

static void zero_bytes_and_empty_texts_are_texts(void **state)
{
    (void)state;
    dr__names names = { 0 };
    assert_true(dr__names_add(&names, "", 0));
    assert_true(dr__names_add(&names, "a\0b", 3));
    assert_true(dr__names_add(&names, "", 0));
    assert_int_equal(dr__names_len(&names, 0), 0);
    assert_int_equal(dr__names_len(&names, 1), 3);
    assert_int_equal(dr__names_len(&names, 2), 0);
    assert_memory_equal(dr__names_get(&names, 1), "a\0b", 4);
    dr__names_free(&names);
}

/* In the order of Python's sorted() on os.fsdecode of each. */
static const char *const ordered[] = {
    "", "10.jpg", "9.jpg", "A", "a", "a\x01", "a-b", "a.jpg", "ab", "z", "\xC3", /* no UTF-8: U+DCC3 */
};

static void order_is_by_code_point(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < sizeof ordered / sizeof ordered[0]; i++) {
        assert_true(dr__name_compare(ordered[i], ordered[i + 1]) < 0);
        assert_true(dr__name_compare(ordered[i + 1], ordered[i]) > 0);
        assert_int_equal(dr__name_compare(ordered[i], ordered[i]), 0);
    }
}

static void bytes_that_are_no_text_sort_as_python_does(void **state)
{
    (void)state;
    /* U+00E9 < U+4E2D < U+DCFF (a lone 0xFF) < U+F8FF < U+1F600 */
    const char *const names[] = { "\xC3\xA9", "\xE4\xB8\xAD", "\xFF", "\xEF\xA3\xBF", "\xF0\x9F\x98\x80" };
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++) {
            int c = dr__name_compare(names[i], names[k]);
            assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
        }
    /* "\xC3a" is U+DCC3 'a', after U+00E9, though 'a' < 0xA9; surrogates and overlong forms are no UTF-8 */
    assert_true(dr__name_compare("\xC3"
                                 "a",
                                 "\xC3\xA9") > 0);
    assert_true(dr__name_compare("\xED\xA0\x80", "\xED\x9F\xBF") > 0);
    assert_true(dr__name_compare("\xC0\x80", "\xE4\xB8\xAD") > 0);
}

static int compare(const void *a, const void *b)
{
    return dr__name_compare(*(const char *const *)a, *(const char *const *)b);
}

static void sorting_agrees_with_comparing(void **state)
{
    (void)state;
    enum { N = 500 };
    static char text[N][24];
    const char *fast[N], *plain[N];
    for (int ascii = 0; ascii < 2; ascii++) {
        srand(7);
        for (int i = 0; i < N; i++) {
            int n = snprintf(text[i], sizeof text[i], "shared-prefix%d", rand() % 400 * (rand() % 3 ? 1 : 100000));
            if (!ascii && i % 50 == 0)
                text[i][n - 1] = (char)(0x80 + rand() % 128);
            fast[i] = plain[i] = text[i];
        }
        qsort(plain, N, sizeof plain[0], compare);
        assert_true(dr__names_sort(fast, N));
        for (int i = 0; i < N; i++)
            assert_string_equal(fast[i], plain[i]);
    }
}

static void adding_survives_lack_of_memory(void **state)
{
    (void)state;
    dr__names names = { 0 };
    for (long n = 1; n <= 3; n++) {
        dr__alloc_fail_at(n, true);
        assert_false(dr__names_add(&names, "x", 1));
        dr__alloc_fail_at(0, false);
        assert_int_equal(names.n, 0);
        dr__names_free(&names);
    }
    assert_true(dr__names_add(&names, "x", 1));
    dr__names_free(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(zero_bytes_and_empty_texts_are_texts),
        cmocka_unit_test(order_is_by_code_point),
        cmocka_unit_test(bytes_that_are_no_text_sort_as_python_does),
        cmocka_unit_test(sorting_agrees_with_comparing),
        cmocka_unit_test(adding_survives_lack_of_memory),
    };
    (void)tree_make, (void)tree_remove;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
