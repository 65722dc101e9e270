/* test_mixture.c: shares, passes and occurrences of mixtures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "format/dataset_internal.h"

static int64_t numbers[1000];

static dr_dataset *set_of(int64_t n, const char *name)
{
    dr_array a = { name, { .dtype = DR_I64, .n_dims = 1, .dims = { n } }, numbers };
    dr_dataset *set;
    assert_int_equal(dr_dataset_from_arrays(&a, 1, NULL, NULL, &set, NULL), DR_OK);
    return set;
}

static dr_dataset *mix_of(const int64_t *sizes, const double *weights, int n, uint64_t length)
{
    dr_dataset *sets[8] = { NULL }, *mix;
    dr_error err;
    for (int i = 0; i < n; i++)
        sets[i] = set_of(sizes[i], "label");
    if (dr_dataset_mix(sets, weights, n, length, &mix, &err) != DR_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < n; i++)
        dr_dataset_unref(&sets[i]); /* the mixture holds them */
    return mix;
}

static void shares_are_exact(void **state)
{
    (void)state;
    const struct {
        double weights[3];
        uint64_t length, want[3];
    } cases[] = {
        { { 1, 1, 1 }, 10, { 4, 3, 3 } }, { { 0.5, 0.25, 0.25 }, 7, { 3, 2, 2 } }, { { 0, 1, 0 }, 5, { 0, 5, 0 } },
        { { 1, 2, 3 }, 6, { 1, 2, 3 } },  { { 1e-9, 1, 1 }, 4, { 0, 2, 2 } },      { { 3, 1, 1 }, 0, { 108, 36, 36 } },
    };
    const int64_t sizes[] = { 100, 50, 30 };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        dr_dataset *mix = mix_of(sizes, cases[k].weights, 3, cases[k].length);
        uint64_t got[3] = { 0 };
        for (uint64_t p = 0; p < dr_dataset_places(mix); p++) {
            uint64_t id = mix->def->place(mix, 1, 0, p).id;
            got[id < 100 ? 0 : id < 150 ? 1 : 2]++;
        }
        for (int i = 0; i < 3; i++)
            assert_int_equal(got[i], cases[k].want[i]);
        assert_int_equal(dr_dataset_size(mix), 180);
        dr_dataset_unref(&mix);
    }
}

/* Over many epochs a set is gone through pass by pass, each sample once in a pass, whatever the share. */
static void sets_go_on_where_they_stopped(void **state)
{
    (void)state;
    const int64_t sizes[] = { 7, 10 };
    const double weights[] = { 3, 1 };
    dr_dataset *mix = mix_of(sizes, weights, 2, 20); /* 15 of the first (repeats), 5 of the second (a half) */
    int seen[17] = { 0 };
    for (uint64_t epoch = 0; epoch < 14; epoch++)
        for (uint64_t p = 0; p < 20; p++)
            seen[mix->def->place(mix, 42, epoch, p).id]++;
    for (int i = 0; i < 17; i++)
        assert_int_equal(seen[i], i < 7 ? 14 * 15 / 7 : 14 * 5 / 10);
    int second[10] = { 0 };
    for (uint64_t epoch = 0; epoch < 2; epoch++) /* two epochs are one pass of the second set */
        for (uint64_t p = 15; p < 20; p++)
            second[mix->def->place(mix, 42, epoch, p).id - 7]++;
    for (int i = 0; i < 10; i++)
        assert_int_equal(second[i], 1);
    dr_dataset_unref(&mix);
}

static void occurrence_counts_earlier_appearances(void **state)
{
    (void)state;
    const int64_t sizes[] = { 7, 5 };
    const double weights[] = { 2, 1 };
    dr_dataset *mix = mix_of(sizes, weights, 2, 60);
    for (uint64_t epoch = 0; epoch < 9; epoch++) {
        uint32_t seen[12] = { 0 };
        for (uint64_t p = 0; p < 60; p++) {
            dr__sample_ref ref = mix->def->place(mix, 5, epoch, p);
            assert_int_equal(ref.occurrence, seen[ref.id]++);
        }
    }
    dr_dataset_unref(&mix);
}

static void order_depends_on_seed_and_pass(void **state)
{
    (void)state;
    const int64_t sizes[] = { 100 };
    const double weights[] = { 1 };
    dr_dataset *mix = mix_of(sizes, weights, 1, 0);
    int same_seed = 0, same_epoch = 0;
    for (uint64_t p = 0; p < 100; p++) {
        same_seed += mix->def->place(mix, 1, 0, p).id == mix->def->place(mix, 2, 0, p).id;
        same_epoch += mix->def->place(mix, 1, 0, p).id == mix->def->place(mix, 1, 1, p).id;
    }
    assert_true(same_seed < 20);
    assert_true(same_epoch < 20);
    dr_dataset_unref(&mix);
}

static void samples_keep_their_values(void **state)
{
    (void)state;
    int64_t a[2] = { 10, 11 }, b[2] = { 20, 21 };
    double x[2] = { 0.5, 1.5 };
    dr_desc ints = { .dtype = DR_I64, .n_dims = 1, .dims = { 2 } },
            reals = { .dtype = DR_F64, .n_dims = 1, .dims = { 2 } };
    dr_array first[] = { { "label", ints, a }, { "x", reals, x } };
    dr_array second[] = { { "x", reals, x }, { "label", ints, b } }; /* another order */
    dr_dataset *sets[2], *mix;
    const double weights[] = { 1, 1 };
    assert_int_equal(dr_dataset_from_arrays(first, 2, NULL, NULL, &sets[0], NULL), DR_OK);
    assert_int_equal(dr_dataset_from_arrays(second, 2, NULL, NULL, &sets[1], NULL), DR_OK);
    assert_int_equal(dr_dataset_mix(sets, weights, 2, 0, &mix, NULL), DR_OK);
    dr__record r;
    dr__record_init(&r);
    for (uint64_t id = 0; id < 4; id++) {
        assert_int_equal(mix->def->read(mix, id, &r, NULL), DR_OK);
        assert_int_equal(*(int64_t *)(void *)r.fields[0].data, id < 2 ? a[id] : b[id - 2]);
        assert_true(*(double *)(void *)r.fields[1].data == x[id % 2]);
    }
    char text[8];
    assert_int_equal(dr_dataset_key(mix, 3, text, sizeof text, NULL), DR_OK);
    assert_string_equal(text, "1");
    dr__record_free(&r);
    dr_dataset_unref(&mix);
    dr_dataset_unref(&sets[0]);
    dr_dataset_unref(&sets[1]);
}

static void fails(dr_dataset *a, dr_dataset *b, double wa, double wb, dr_status want, const char *part)
{
    dr_dataset *sets[] = { a, b }, *mix = NULL;
    const double weights[] = { wa, wb };
    dr_error err;
    assert_int_equal(dr_dataset_mix(sets, weights, 2, 0, &mix, &err), want);
    if (!strstr(err.text, part))
        fail_msg("%s", err.text);
    assert_null(mix);
}

static void what_cannot_be_mixed(void **state)
{
    (void)state;
    const int64_t sizes[] = { 3 };
    const double weights[] = { 1 };
    dr_dataset *a = set_of(3, "label"), *b = set_of(3, "other"), *m = mix_of(sizes, weights, 1, 0);
    dr_array reals = { "label", { .dtype = DR_F64, .n_dims = 1, .dims = { 3 } }, numbers };
    dr_dataset *r, *out;
    assert_int_equal(dr_dataset_from_arrays(&reals, 1, NULL, NULL, &r, NULL), DR_OK);
    fails(a, b, 1, 1, DR_ERR_ARG, "\"label\"");
    fails(a, r, 1, 1, DR_ERR_ARG, "float64");
    fails(a, a, 0, 0, DR_ERR_ARG, "above 0");
    fails(a, a, 1, -1, DR_ERR_ARG, "-1");
    fails(a, a, 1, NAN, DR_ERR_ARG, "nan");
    fails(a, a, 1, INFINITY, DR_ERR_ARG, "inf");
    fails(a, m, 1, 1, DR_ERR_UNSUPPORTED, "mixture");
    assert_int_equal(dr_dataset_mix(NULL, weights, 1, 0, &out, NULL), DR_ERR_ARG);
    for (long n = 1; n <= 3; n++) {
        dr__alloc_fail_at(n, false);
        assert_int_equal(dr_dataset_mix(&a, weights, 1, 0, &out, NULL), DR_ERR_NOMEM);
        dr__alloc_fail_at(0, false);
    }
    dr_dataset_unref(&a);
    dr_dataset_unref(&b);
    dr_dataset_unref(&m);
    dr_dataset_unref(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_exact),
        cmocka_unit_test(sets_go_on_where_they_stopped),
        cmocka_unit_test(occurrence_counts_earlier_appearances),
        cmocka_unit_test(order_depends_on_seed_and_pass),
        cmocka_unit_test(samples_keep_their_values),
        cmocka_unit_test(what_cannot_be_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
