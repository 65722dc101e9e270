/* test_retry.c: intervals of tries, late answers. */
#include "unit/cm.h"

#include "source/retry.h"

static void waits_double_up_to_a_limit(void **state)
{
    (void)state;
    uint64_t before = 0;
    for (unsigned tries = 1; tries < 40; tries++) {
        const uint64_t longest = dr__retry_wait_ns(tries, 0, 0), shortest = dr__retry_wait_ns(tries, UINT32_MAX, 0);
        assert_true(longest >= before);
        assert_true(longest == 2 * before || tries == 1 || longest == UINT64_C(10000000000));
        assert_true(shortest >= longest / 2 && shortest < longest * 51 / 100);
        before = longest;
    }
    assert_int_equal(dr__retry_wait_ns(1, 0, 0), 100000000);
}

static void servers_say_when(void **state)
{
    (void)state;
    for (uint32_t random = 0; random < 0xF0000000; random += 0x10000000) {
        assert_true(dr__retry_wait_ns(1, random, UINT64_C(30000000000)) >= UINT64_C(30000000000));
        assert_true(dr__retry_wait_ns(1, random, UINT64_C(30000000000)) <= UINT64_C(31000000000));
    }
    assert_true(dr__retry_wait_ns(20, 0, 1) >= UINT64_C(10000000000));
}

static void statuses_are_told_apart(void **state)
{
    (void)state;
    static const int again[] = { 408, 425, 429, 500, 502, 503, 504 },
                     final[] = { 200, 301, 400, 401, 403, 404, 412, 416, 501 };
    for (size_t i = 0; i < sizeof again / sizeof *again; i++)
        assert_true(dr__retry_http(again[i], 1));
    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        assert_false(dr__retry_http(final[i], 1));
    assert_false(dr__retry_http(500, DR__RETRY_BROKEN));
    assert_true(dr__retry_http(503, 1000));
    assert_true(dr__retry_http_refused(503));
    assert_false(dr__retry_http_refused(500));
}

static void late_is_what_others_are_not(void **state)
{
    (void)state;
    dr__answer_times t = { 0 };
    for (int i = 0; i < DR__HEDGE_ANSWERS; i++) {
        assert_true(dr__answer_times_late_ns(&t) == UINT64_MAX); /* too few are known */
        dr__answer_times_add(&t, 100000000);
    }
    const uint64_t steady = dr__answer_times_late_ns(&t);
    assert_in_range(steady, 200000000, 300000000);
    for (int i = 0; i < 100; i++)
        dr__answer_times_add(&t, i % 2 ? 50000000 : 150000000);
    assert_true(dr__answer_times_late_ns(&t) > steady); /* they differ more */
    for (int i = 0; i < 1000; i++)
        dr__answer_times_add(&t, 1000000);
    assert_int_equal(dr__answer_times_late_ns(&t), 50000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_double_up_to_a_limit),
        cmocka_unit_test(servers_say_when),
        cmocka_unit_test(statuses_are_told_apart),
        cmocka_unit_test(late_is_what_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
