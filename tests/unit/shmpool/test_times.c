/* Means, medians and what counts as slow. */
#include "unit/cm.h"

#include "shmpool/shared.h"

static void nothing_is_slow_before_times_are_seen(void **state)
{
    (void)state;
    struct dr__board b = { 0 };
    assert_int_equal(dr__times_mean(&b.times), 0);
    assert_true(dr__threshold(&b) == UINT64_MAX);
    b.set_threshold_ns = 5;
    assert_int_equal(dr__threshold(&b), 5);
}

static void slow_is_far_above_the_median(void **state)
{
    (void)state;
    struct dr__board b = { 0 };
    for (int i = 0; i < 200; i++)
        dr__times_add(&b.times, i % 10 ? 1000000 : 20000000, 1);
    assert_int_equal(dr__times_mean(&b.times), 2900000);
    assert_in_range(dr__threshold(&b), 3000000, 5000000);
}

static void what_is_expected_counts_until_enough_is_seen(void **state)
{
    (void)state;
    struct dr__board b = { 0 };
    dr__times_expect(&b.times, 1000);
    assert_int_equal(dr__threshold(&b), 4000);
    dr__times_set_slow(&b.times, 6);
    assert_int_equal(dr__threshold(&b), 6000);
    dr__times_add(&b.times, 1000000, 31);
    assert_int_equal(dr__threshold(&b), 6000);
    dr__times_add(&b.times, 1000000, 1);
    assert_in_range(dr__threshold(&b), 5000000, 6000000);
    dr__times_expect(&b.times, 0);
    assert_in_range(dr__threshold(&b), 5000000, 6000000);
}

static void old_times_are_forgotten(void **state)
{
    (void)state;
    struct dr__times t = { 0 };
    for (int i = 0; i < 2000; i++)
        dr__times_add(&t, 1000, 10);
    for (int i = 0; i < 10000; i++)
        dr__times_add(&t, 1000000, 10);
    assert_in_range(dr__times_mean(&t), 990000, 1010000);
    assert_in_range(t.threshold_ns, 3000000, 5000000);
}

static void any_time_is_taken(void **state)
{
    (void)state;
    struct dr__times t = { 0 };
    for (int bit = 0; bit < 64; bit++)
        dr__times_add(&t, UINT64_C(1) << bit, 1);
    dr__times_add(&t, 0, 1);
    assert_int_equal(t.count, 65);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_slow_before_times_are_seen),
        cmocka_unit_test(slow_is_far_above_the_median),
        cmocka_unit_test(what_is_expected_counts_until_enough_is_seen),
        cmocka_unit_test(old_times_are_forgotten),
        cmocka_unit_test(any_time_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
