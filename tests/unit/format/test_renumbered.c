/* test_renumbered.c: places of a data set as samples with ids of their own. */
#include "unit/cm.h"

#include "base/alloc.h"
#include "format/dataset_internal.h"

static int64_t numbers[50];
static dr_error err;

static dr_dataset *numbers_set(void)
{
    dr_array a = { "n", { .dtype = DR_I64, .n_dims = 1, .dims = { 50 } }, numbers };
    dr_dataset *set;
    for (int64_t i = 0; i < 50; i++)
        numbers[i] = i * i;
    assert_ok(dr_dataset_from_arrays(&a, 1, NULL, NULL, &set, &err));
    return set;
}

static int64_t value_of(const dr_dataset *set, uint64_t id)
{
    dr__record r;
    dr__record_init(&r);
    assert_ok(dr__dataset_read(set, id, &r, &err));
    const int64_t value = *(int64_t *)(void *)r.fields[0].data;
    dr__record_free(&r);
    return value;
}

static void samples_are_numbered_by_their_places(void **state)
{
    (void)state;
    static const int64_t indices[] = { 7, 3, 40, 3 };
    char text[32];
    dr_dataset *whole = numbers_set(), *chosen, *set;
    assert_ok(dr_dataset_select(whole, indices, 4, &chosen, &err));
    assert_ok(dr_dataset_renumbered(chosen, &set, &err));
    assert_int_equal(dr_dataset_size(set), 4);
    assert_int_equal(dr_dataset_places(set), 4);
    assert_int_equal(dr_dataset_fields(set), dr_dataset_fields(whole));
    assert_true(dr_dataset_fingerprint(set) != dr_dataset_fingerprint(chosen));
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(dr__dataset_place(set, 5, 9, i).id, i);
        assert_int_equal(dr__dataset_place(set, 5, 9, i).occurrence, 0);
        assert_int_equal(value_of(set, i), indices[i] * indices[i]);
    }
    assert_ok(dr_dataset_key(set, 2, text, sizeof text, &err));
    assert_string_equal(text, "40");
    assert_int_equal(dr_dataset_key(set, 4, text, sizeof text, &err), DR_ERR_ARG);
    dr_dataset_unref(&whole); /* the others hold it */
    dr_dataset_unref(&chosen);
    assert_int_equal(value_of(set, 0), 49);
    dr_dataset_unref(&set);
}

static void mixtures_are_refused(void **state)
{
    (void)state;
    static const double weights[] = { 1, 2 };
    dr_dataset *a = numbers_set(), *b = numbers_set(), *mixed, *set = NULL;
    assert_ok(dr_dataset_mix((dr_dataset *const[]){ a, b }, weights, 2, 0, &mixed, &err));
    assert_fails(dr_dataset_renumbered(mixed, &set, &err), DR_ERR_UNSUPPORTED, "changes each epoch");
    assert_fails(dr_dataset_renumbered(NULL, &set, &err), DR_ERR_ARG, "needs a data set");
    assert_null(set);
    dr_dataset_unref(&mixed);
    dr_dataset_unref(&a);
    dr_dataset_unref(&b);
}

static void failing_allocations_leave_nothing(void **state)
{
    (void)state;
    dr_dataset *whole = numbers_set(), *set = NULL;
    dr_status status = DR_ERR_NOMEM;
    for (long n = 1; status == DR_ERR_NOMEM; n++) {
        dr__alloc_fail_at(n, false);
        status = dr_dataset_renumbered(whole, &set, &err);
        dr__alloc_fail_at(0, false);
    }
    assert_int_equal(status, DR_OK);
    dr_dataset_unref(&set);
    dr_dataset_unref(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_numbered_by_their_places),
        cmocka_unit_test(mixtures_are_refused),
        cmocka_unit_test(failing_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
