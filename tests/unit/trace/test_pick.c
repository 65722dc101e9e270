/* Which spans are kept, on a clock of the test's own. */
#include "unit/cm.h"

#include <math.h>

#include "trace/pick.h"

enum { SECOND = 1000000000, NORMAL = 100000 };

static void all_without_a_limit(void **state)
{
    (void)state;
    dr__picker p;
    dr__picker_init(&p, HUGE_VAL, 1);
    for (uint64_t i = 0; i < 100000; i++)
        assert_true(dr__picker_wants(&p, i, DR_SPAN_WORK, NORMAL, 1));
    assert_true(p.left_out == 0);
}

static void all_while_there_are_few(void **state)
{
    (void)state;
    dr__picker p;
    dr__picker_init(&p, 2000, 1);
    for (uint64_t i = 1; i <= 10000; i++) /* 1000 a second */
        assert_true(dr__picker_wants(&p, i * (SECOND / 1000), DR_SPAN_WORK, NORMAL, 1));
    assert_true(p.left_out == 0);
}

/* 50 times too many: as many as wanted, evenly from all of the time, and the others counted. */
static void a_fair_sample_of_many(void **state)
{
    (void)state;
    dr__picker p;
    uint64_t kept[10] = { 0 }, sum = 0;
    const uint64_t per_s = 100000;
    dr__picker_init(&p, 2000, 7);
    for (uint64_t i = 1; i < 10 * per_s; i++)
        kept[i / per_s] += dr__picker_wants(&p, i * (SECOND / per_s), DR_SPAN_WORK, NORMAL + i % 100, 1);
    for (int i = 0; i < 10; i++) {
        assert_in_range(kept[i], 1600, 2600); /* 2000, standard deviation 45; the first window is cut off */
        sum += kept[i];
    }
    assert_true(p.left_out + sum == 10 * per_s - 1);
}

/* One in 10 000 takes 30 times as long: each of them is there. */
static void the_slowest_are_kept(void **state)
{
    (void)state;
    dr__picker p;
    const uint64_t per_s = 100000;
    dr__picker_init(&p, 500, 3);
    for (uint64_t i = 1; i < 5 * per_s; i++) {
        const bool slow = i % 10000 == 9999;
        const bool takes = dr__picker_wants(&p, i * (SECOND / per_s), DR_SPAN_WORK, slow ? 30 * NORMAL : NORMAL, 2);
        assert_true(takes || !slow);
    }
}

/* Where one in ten is slow, there are too many of them to keep all; the slowest of these are. */
static void many_slow_ones_raise_the_bar(void **state)
{
    (void)state;
    dr__picker p;
    uint64_t slow = 0, slowest = 0;
    const uint64_t per_s = 100000;
    dr__picker_init(&p, 1000, 3);
    for (uint64_t i = 1; i < 10 * per_s; i++) {
        const uint64_t ns = i % 5000 == 4999 ? 1000 * NORMAL : i % 10 == 9 ? 20 * NORMAL : NORMAL;
        const bool takes = dr__picker_wants(&p, i * (SECOND / per_s), DR_SPAN_WORK, ns, 1);
        slow += takes && ns > NORMAL && i > 5 * per_s;
        slowest += takes && ns == 1000 * NORMAL;
    }
    assert_true(slowest == 10 * per_s / 5000);
    assert_true(slow < 5 * 3000); /* of 50 000 */
}

/* Waits of seconds do not make reads of milliseconds look quick. */
static void kinds_have_means_of_their_own(void **state)
{
    (void)state;
    dr__picker p;
    dr__picker_init(&p, 100, 5);
    for (uint64_t i = 1; i < 100000; i++) {
        dr__picker_wants(&p, i * 10000, DR_SPAN_WAIT, 1000 * NORMAL, 1);
        const bool slow = i % 1000 == 999;
        assert_true(dr__picker_wants(&p, i * 10000, DR_SPAN_FINISH, slow ? 10 * NORMAL : NORMAL, 1) || !slow);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_without_a_limit),          cmocka_unit_test(all_while_there_are_few),
        cmocka_unit_test(a_fair_sample_of_many),        cmocka_unit_test(the_slowest_are_kept),
        cmocka_unit_test(many_slow_ones_raise_the_bar), cmocka_unit_test(kinds_have_means_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
