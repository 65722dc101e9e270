/* Allocation: sizes that overflow, and the switch that makes it fail. */
#include "unit/cm.h"

#include "base/alloc.h"

static void overflow_is_refused(void **state)
{
    (void)state;
    size_t out = 7;
    assert_false(dr__mul_size(SIZE_MAX / 2, 3, &out));
    assert_false(dr__add_size(SIZE_MAX, 1, &out));
    assert_int_equal(out, 7);
    assert_true(dr__mul_size(6, 7, &out));
    assert_int_equal(out, 42);
    assert_null(dr__realloc(NULL, SIZE_MAX / 2, 3));
    assert_null(dr__alloc_aligned(SIZE_MAX - 3));
}

static void nth_allocation_fails(void **state)
{
    (void)state;
    dr__alloc_fail_at(2, false);
    void *a = dr__alloc(1), *b = dr__alloc(1), *c = dr__alloc(1);
    assert_int_equal(dr__alloc_fail_at(0, false), 3);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    dr__free(a);
    dr__free(c);
}

static void aligned_blocks_are_aligned(void **state)
{
    (void)state;
    for (size_t size = 0; size < 300; size += 7) {
        void *p = dr__alloc_aligned(size);
        assert_int_equal((uintptr_t)p % 64, 0);
        dr__free_aligned(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_is_refused),
        cmocka_unit_test(nth_allocation_fails),
        cmocka_unit_test(aligned_blocks_are_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
