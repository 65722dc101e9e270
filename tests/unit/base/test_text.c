/* test_text.c: texts that grow, also when memory runs short. */
#include "unit/cm.h"

#include "base/text.h"

static void what_is_added_stands_one_after_the_other(void **state)
{
    (void)state;
    char want[3001];
    dr__text t = { 0 };
    for (int i = 0; i < 1000; i++) {
        dr__text_add(&t, "abcdef", 2);
        dr__text_say(&t, "c");
        memcpy(want + 3 * i, "abc", 4);
    }
    assert_false(t.failed);
    assert_int_equal(t.n, 3000);
    assert_string_equal(t.text, want);
    dr__free(t.text);
}

static void after_a_failure_nothing_is_added(void **state)
{
    (void)state;
    dr__text t = { 0 };
    dr__text_say(&t, "kept");
    dr__alloc_fail_at(1, false);
    dr__text_say(&t, " and what needs more room than there is");
    dr__alloc_fail_at(0, false);
    dr__text_say(&t, "!");
    assert_true(t.failed);
    assert_string_equal(t.text, "kept");
    dr__free(t.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added_stands_one_after_the_other),
        cmocka_unit_test(after_a_failure_nothing_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
