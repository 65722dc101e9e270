/* How often an id was seen: against plain counting. */
#include "unit/cm.h"

#include "base/alloc.h"
#include "exec/pushed_order.h"

static void as_plain_counting(void **state)
{
    (void)state;
    enum { IDS = 1000 };
    static uint32_t want[IDS];
    dr__occurrences t = { 0 };
    dr_error err;
    uint64_t x = 1;
    for (int round = 0; round < 3; round++) { /* each begins anew */
        memset(want, 0, sizeof want);
        assert_ok(dr__occurrences_begin(&t, IDS, &err));
        for (int i = 0; i < 200; i++) {
            assert_ok(dr__occurrences_reserve(&t, 25, &err));
            for (int k = 0; k < 25; k++) {
                x = x * 6364136223846793005u + 1442695040888963407u;
                uint64_t id = (x >> 40) % (i % 2 ? 30 : IDS);
                assert_int_equal(dr__occurrences_count(&t, id), want[id]++);
            }
        }
    }
    dr__occurrences_free(&t);
}

static void ids_that_come_once_take_no_row(void **state)
{
    (void)state;
    dr__occurrences t = { 0 };
    dr_error err;
    assert_ok(dr__occurrences_begin(&t, 10000, &err));
    for (uint64_t id = 0; id < 10000; id++) {
        assert_ok(dr__occurrences_reserve(&t, 1, &err));
        assert_int_equal(dr__occurrences_count(&t, id), 0);
    }
    assert_int_equal(t.used, 0);
    dr__occurrences_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_plain_counting),
                                        cmocka_unit_test(ids_that_come_once_take_no_row) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
