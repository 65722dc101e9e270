/* The rule by which "auto" keeps samples. */
#include "unit/cm.h"

#include "exec/cache_stage.h"

static void it_must_be_twice_as_fast(void **state)
{
    (void)state;
    assert_true(
        dr__cache_pays(&(dr__cache_costs){ .plain_us = 1000, .rest_us = 300, .unpack_us = 100, .disk_us = 100 }));
    assert_false(
        dr__cache_pays(&(dr__cache_costs){ .plain_us = 999, .rest_us = 300, .unpack_us = 100, .disk_us = 100 }));
}

/* A photo: decoding it takes 3 ms, of a crop 2 ms; its pixels have 600 KB, or 150 KB made small.  Two workers. */
static void large_results_of_short_work_are_not_kept(void **state)
{
    (void)state;
    double pixels = dr__cache_disk_us(600000, 2), small = dr__cache_disk_us(150000, 2);
    assert_int_equal((int)pixels, 2400);
    assert_false(
        dr__cache_pays(&(dr__cache_costs){ .plain_us = 2000, .rest_us = 300, .unpack_us = 60, .disk_us = pixels }));
    assert_true(
        dr__cache_pays(&(dr__cache_costs){ .plain_us = 3000, .rest_us = 100, .unpack_us = 15, .disk_us = small }));
    /* many workers at one disk */
    small = dr__cache_disk_us(150000, 32);
    assert_false(
        dr__cache_pays(&(dr__cache_costs){ .plain_us = 3000, .rest_us = 100, .unpack_us = 15, .disk_us = small }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_must_be_twice_as_fast),
        cmocka_unit_test(large_results_of_short_work_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
