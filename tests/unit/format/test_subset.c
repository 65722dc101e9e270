/* test_subset.c: slices, selections, shuffled sets and concatenations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "format/dataset_internal.h"

static int64_t numbers[1000]; /* i * i, so that a value is not its place */

static dr_dataset *set_of(int64_t n, const char *name)
{
    dr_array a = { name, { .dtype = DR_I64, .n_dims = 1, .dims = { n } }, numbers };
    dr_dataset *set;
    for (int64_t i = 0; i < 1000; i++)
        numbers[i] = i * i;
    assert_int_equal(dr_dataset_from_arrays(&a, 1, NULL, NULL, &set, NULL), DR_OK);
    return set;
}

static uint64_t id_at(const dr_dataset *set, uint64_t place)
{
    return dr__dataset_place(set, 7, 3, place).id;
}

static int64_t value_of(const dr_dataset *set, uint64_t id)
{
    dr__record r;
    dr__record_init(&r);
    assert_int_equal(dr__dataset_read(set, id, &r, NULL), DR_OK);
    const int64_t value = *(int64_t *)(void *)r.fields[0].data;
    dr__record_free(&r);
    return value;
}

/* The result holds the set. */
static dr_dataset *slice_of(dr_dataset *set, uint64_t first, int64_t step, uint64_t n)
{
    dr_dataset *out;
    dr_error err;
    if (dr_dataset_slice(set, first, step, n, &out, &err) != DR_OK)
        fail_msg("%s", err.text);
    dr_dataset_unref(&set);
    return out;
}

static dr_dataset *select_of(dr_dataset *set, const int64_t *indices, uint64_t n)
{
    dr_dataset *out;
    dr_error err;
    if (dr_dataset_select(set, indices, n, &out, &err) != DR_OK)
        fail_msg("%s", err.text);
    dr_dataset_unref(&set);
    return out;
}

static void has_ids(const dr_dataset *set, const uint64_t *ids, uint64_t n)
{
    assert_int_equal(dr_dataset_places(set), n);
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(id_at(set, i), ids[i]);
        assert_int_equal(value_of(set, ids[i]), (int64_t)(ids[i] * ids[i]));
    }
}

static void slices_take_steps(void **state)
{
    (void)state;
    const struct {
        uint64_t first;
        int64_t step;
        uint64_t n, ids[4];
    } cases[] = {
        { 0, 1, 3, { 0, 1, 2 } },     { 7, 1, 3, { 7, 8, 9 } }, { 1, 4, 3, { 1, 5, 9 } },
        { 9, -3, 4, { 9, 6, 3, 0 } }, { 0, 1, 0, { 0 } },       { 4, 100, 1, { 4 } },
    };
    for (size_t k = 0; k < DR_COUNT(cases); k++) {
        dr_dataset *set = slice_of(set_of(10, "x"), cases[k].first, cases[k].step, cases[k].n);
        has_ids(set, cases[k].ids, cases[k].n);
        assert_int_equal(dr_dataset_size(set), 10);
        dr_dataset_unref(&set);
    }
}

static void slices_stay_inside(void **state)
{
    (void)state;
    const struct {
        uint64_t first;
        int64_t step;
        uint64_t n;
    } wrong[] = { { 10, 1, 1 },        { 0, 1, 11 },        { 8, 2, 2 },          { 2, -1, 4 },        { 0, 0, 2 },
                  { 1, INT64_MAX, 3 }, { 5, INT64_MIN, 2 }, { 0, 1, UINT64_MAX }, { UINT64_MAX, 1, 1 } };
    dr_dataset *set = set_of(10, "x"), *out = NULL;
    dr_error err;
    for (size_t k = 0; k < DR_COUNT(wrong); k++) {
        assert_int_equal(dr_dataset_slice(set, wrong[k].first, wrong[k].step, wrong[k].n, &out, &err), DR_ERR_ARG);
        assert_non_null(strstr(err.text, "10"));
    }
    assert_int_equal(dr_dataset_slice(NULL, 0, 1, 1, &out, NULL), DR_ERR_ARG);
    assert_null(out);
    dr_dataset_unref(&set);
}

static void selections_name_places(void **state)
{
    (void)state;
    const int64_t some[] = { 8, 0, 5 };
    const uint64_t ids[] = { 8, 0, 5 };
    dr_dataset *set = select_of(set_of(10, "x"), some, 3);
    has_ids(set, ids, 3);
    char text[8];
    assert_int_equal(dr_dataset_key(set, 8, text, sizeof text, NULL), DR_OK);
    assert_string_equal(text, "8");
    assert_non_null(strstr(dr_dataset_name(set), "(3 of 10 samples)"));
    set = slice_of(set, 2, -2, 2); /* of a selection of the set: the ids stay those of the set */
    const uint64_t fewer[] = { 5, 8 };
    has_ids(set, fewer, 2);
    assert_non_null(strstr(dr_dataset_name(set), "(2 of 10 samples)"));
    dr_dataset_unref(&set);
}

static void repeats_are_counted(void **state)
{
    (void)state;
    const int64_t some[] = { 3, 4, 3, 3 }, again[] = { 2, 0, 2 };
    dr_dataset *set = select_of(set_of(10, "x"), some, 4);
    const uint32_t times[] = { 0, 0, 1, 2 };
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(dr__dataset_place(set, 0, 0, i).occurrence, times[i]);
    set = select_of(set, again, 3); /* all of them sample 3: no two draw alike */
    uint32_t seen[3];
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(id_at(set, i), 3);
        seen[i] = dr__dataset_place(set, 0, 0, i).occurrence;
    }
    assert_true(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
    dr_dataset_unref(&set);
}

static void selections_are_checked(void **state)
{
    (void)state;
    const int64_t above[] = { 0, 10 }, below[] = { -1 }, good[] = { 1, 1 };
    dr_dataset *set = set_of(10, "x"), *out = NULL;
    dr_error err;
    assert_int_equal(dr_dataset_select(set, above, 2, &out, &err), DR_ERR_ARG);
    assert_non_null(strstr(err.text, "got 10"));
    assert_int_equal(dr_dataset_select(set, below, 1, &out, &err), DR_ERR_ARG);
    assert_int_equal(dr_dataset_select(set, NULL, 1, &out, &err), DR_ERR_ARG);
    for (long n = 1; n <= 6; n++) { /* the struct, its name, indices, seen, counts, times */
        dr__alloc_fail_at(n, false);
        assert_int_equal(dr_dataset_select(set, good, 2, &out, &err), DR_ERR_NOMEM);
        dr__alloc_fail_at(0, false);
    }
    assert_null(out);
    dr_dataset_unref(&set);
}

/* The parts of a split have each sample once between them. */
static void shuffled_sets_are_permutations(void **state)
{
    (void)state;
    dr_dataset *set = set_of(100, "x"), *a, *b, *parts[2];
    assert_int_equal(dr_dataset_shuffled(set, 1, &a, NULL), DR_OK);
    assert_int_equal(dr_dataset_shuffled(set, 2, &b, NULL), DR_OK);
    int seen[100] = { 0 }, same = 0, stayed = 0;
    for (uint64_t i = 0; i < 100; i++) {
        same += id_at(a, i) == id_at(b, i);
        stayed += id_at(a, i) == i;
        assert_int_equal(dr__dataset_place(a, 1, 0, i).id, dr__dataset_place(a, 9, 5, i).id); /* of no epoch */
    }
    assert_true(same < 20 && stayed < 20);
    assert_int_equal(dr_dataset_slice(a, 0, 1, 70, &parts[0], NULL), DR_OK);
    assert_int_equal(dr_dataset_slice(a, 70, 1, 30, &parts[1], NULL), DR_OK);
    for (int k = 0; k < 2; k++) {
        for (uint64_t i = 0; i < dr_dataset_places(parts[k]); i++)
            seen[id_at(parts[k], i)]++;
        dr_dataset_unref(&parts[k]);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    dr_dataset_unref(&a);
    dr_dataset_unref(&b);
    dr_dataset_unref(&set);
}

static void concatenations_number_through(void **state)
{
    (void)state;
    const int64_t some[] = { 4, 4, 1 };
    dr_dataset *parts[] = { set_of(10, "x"), select_of(set_of(5, "x"), some, 3), set_of(2, "x") }, *all;
    const uint64_t ids[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 14, 11, 15, 16 };
    const int64_t values[] = { 0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 16, 16, 1, 0, 1 };
    assert_int_equal(dr_dataset_concat(parts, 3, &all, NULL), DR_OK);
    for (int i = 0; i < 3; i++)
        dr_dataset_unref(&parts[i]); /* the whole holds them */
    assert_int_equal(dr_dataset_size(all), 17);
    assert_int_equal(dr_dataset_places(all), 15);
    for (uint64_t i = 0; i < 15; i++) {
        assert_int_equal(id_at(all, i), ids[i]);
        assert_int_equal(value_of(all, ids[i]), values[i]);
        assert_int_equal(dr__dataset_place(all, 0, 0, i).occurrence, i == 11);
    }
    char text[8];
    assert_int_equal(dr_dataset_key(all, 16, text, sizeof text, NULL), DR_OK);
    assert_string_equal(text, "1");
    dr_dataset_unref(&all);
}

static void what_cannot_be_put_together(void **state)
{
    (void)state;
    const double weight = 1;
    dr_dataset *a = set_of(3, "x"), *b = set_of(3, "y"), *mix, *out = NULL;
    dr_dataset *ab[] = { a, b }, *am[] = { a, NULL };
    dr_error err;
    assert_int_equal(dr_dataset_mix(&a, &weight, 1, 0, &mix, NULL), DR_OK);
    assert_int_equal(dr_dataset_concat(ab, 2, &out, &err), DR_ERR_ARG);
    assert_non_null(strstr(err.text, "concat: ") && strstr(err.text, "\"x\"") ? err.text : NULL);
    assert_int_equal(dr_dataset_concat(am, 2, &out, &err), DR_ERR_ARG);
    assert_int_equal(dr_dataset_concat(ab, 0, &out, &err), DR_ERR_ARG);
    am[1] = mix;
    assert_int_equal(dr_dataset_concat(am, 2, &out, &err), DR_ERR_UNSUPPORTED);
    assert_int_equal(dr_dataset_slice(mix, 0, 1, 1, &out, &err), DR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "mixture"));
    for (long n = 1; n <= 3; n++) {
        dr__alloc_fail_at(n, false);
        assert_int_equal(dr_dataset_concat(&a, 1, &out, NULL), DR_ERR_NOMEM);
        dr__alloc_fail_at(0, false);
    }
    assert_null(out);
    dr_dataset_unref(&a);
    dr_dataset_unref(&b);
    dr_dataset_unref(&mix);
}

/* A subset in a mixture repeats what it has, and no two of an epoch draw alike. */
static void mixtures_of_subsets(void **state)
{
    (void)state;
    const int64_t some[] = { 2, 9, 2 };
    const double weights[] = { 2, 1 };
    dr_dataset *sets[] = { select_of(set_of(10, "x"), some, 3), set_of(4, "x") }, *mix;
    assert_int_equal(dr_dataset_mix(sets, weights, 2, 18, &mix, NULL), DR_OK);
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        int count[14] = { 0 };
        uint32_t seen[14][32] = { 0 };
        for (uint64_t p = 0; p < 18; p++) {
            dr__sample_ref ref = mix->def->place(mix, 5, epoch, p);
            for (int i = 0; i < count[ref.id]; i++)
                assert_true(seen[ref.id][i] != ref.occurrence);
            seen[ref.id][count[ref.id]++] = ref.occurrence;
        }
        assert_int_equal(count[2], 8);
        assert_int_equal(count[9], 4);
    }
    dr_dataset_unref(&mix);
    dr_dataset_unref(&sets[0]);
    dr_dataset_unref(&sets[1]);
}

/* States tell selections apart; what is kept of samples does not. */
static void fingerprints_say_what_was_taken(void **state)
{
    (void)state;
    const int64_t one[] = { 1, 2 }, other[] = { 2, 1 };
    dr_dataset *set = set_of(10, "x"), *all[7];
    all[0] = set;
    all[1] = slice_of(dr_dataset_ref(set), 0, 1, 2);
    all[2] = slice_of(dr_dataset_ref(set), 1, 1, 2);
    all[3] = slice_of(dr_dataset_ref(set), 0, 2, 2);
    all[4] = select_of(dr_dataset_ref(set), one, 2);
    all[5] = select_of(dr_dataset_ref(set), other, 2);
    assert_int_equal(dr_dataset_shuffled(set, 1, &all[6], NULL), DR_OK);
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < i; k++)
            assert_true(dr_dataset_fingerprint(all[i]) != dr_dataset_fingerprint(all[k]));
        assert_true(dr__dataset_content(all[i]) == dr_dataset_fingerprint(set));
    }
    for (int i = 0; i < 7; i++)
        dr_dataset_unref(&all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_take_steps),
        cmocka_unit_test(slices_stay_inside),
        cmocka_unit_test(selections_name_places),
        cmocka_unit_test(repeats_are_counted),
        cmocka_unit_test(selections_are_checked),
        cmocka_unit_test(shuffled_sets_are_permutations),
        cmocka_unit_test(concatenations_number_through),
        cmocka_unit_test(what_cannot_be_put_together),
        cmocka_unit_test(mixtures_of_subsets),
        cmocka_unit_test(fingerprints_say_what_was_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
