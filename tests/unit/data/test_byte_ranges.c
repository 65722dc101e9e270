/* test_byte_ranges.c: ranges in order, joined where the gap between them is small; pieces found by a byte of theirs. */
#include "unit/cm.h"

#include "data/byte_ranges.h"

static void ranges_stay_apart_or_are_joined(void **state)
{
    (void)state;
    dr__byte_ranges r = { 0 };
    assert_true(dr__byte_ranges_add(&r, 10, 0, 5)); /* nothing */
    assert_int_equal(r.n, 0);
    assert_true(dr__byte_ranges_add(&r, 10, 10, 5));
    assert_true(dr__byte_ranges_add(&r, 25, 5, 5)); /* five bytes between: apart */
    assert_int_equal(r.n, 2);
    assert_true(dr__byte_ranges_add(&r, 34, 6, 5)); /* four: joined */
    assert_true(dr__byte_ranges_add(&r, 40, 2, 0)); /* adjacent */
    assert_true(dr__byte_ranges_add(&r, 38, 1, 0)); /* inside */
    assert_int_equal(r.n, 2);
    assert_int_equal(r.at[1].offset, 25);
    assert_int_equal(r.at[1].size, 17);
    assert_int_equal(dr__byte_ranges_total(&r), 27);
    assert_true(dr__byte_ranges_add(&r, 1 << 30, 1, UINT64_MAX));
    assert_int_equal(r.n, 2);
}

static void there_is_an_end_of_room(void **state)
{
    (void)state;
    dr__byte_ranges r = { 0 };
    for (uint64_t i = 0; i < DR__MOST_RANGES; i++)
        assert_true(dr__byte_ranges_add(&r, 10 * i, 1, 2));
    assert_false(dr__byte_ranges_add(&r, 10 * DR__MOST_RANGES, 1, 2));
    assert_true(dr__byte_ranges_add(&r, 10 * DR__MOST_RANGES, 1, 20));
    assert_int_equal(r.n, DR__MOST_RANGES);
}

static void pieces_are_found(void **state)
{
    (void)state;
    const dr__byte_piece p[] = { { 5, 3, NULL }, { 8, 2, NULL }, { 20, 1, NULL } };
    for (uint64_t at = 0; at < 30; at++) {
        const dr__byte_piece *want = at >= 5 && at < 8 ? &p[0] : at >= 8 && at < 10 ? &p[1] : at == 20 ? &p[2] : NULL;
        assert_ptr_equal(dr__byte_piece_at(p, 3, at), want);
    }
    assert_null(dr__byte_piece_at(p, 0, 5));
    assert_null(dr__byte_piece_at(p, 3, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_stay_apart_or_are_joined),
        cmocka_unit_test(there_is_an_end_of_room),
        cmocka_unit_test(pieces_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
